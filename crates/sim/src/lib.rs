//! A simulated LLM engine with a log of the truth.
