//! Statistics and opinion over records.
