//! The parts that only Linux has.

pub(crate) mod control;
pub(crate) mod host;
pub(crate) mod socket;
pub(crate) mod timer;
