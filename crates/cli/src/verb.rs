//! One file a verb.

pub(crate) mod check;
pub(crate) mod dataset;
pub(crate) mod decode;
pub(crate) mod dialects;
pub(crate) mod find;
pub(crate) mod init;
pub(crate) mod metrics;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod sim;
pub(crate) mod trace;
