//! The run: schedule, workers, requests, records.
