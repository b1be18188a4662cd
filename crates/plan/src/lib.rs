//! From text and flags to a validated plan.
