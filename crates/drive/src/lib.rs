//! The run: from a plan to a stream of records.
//!
//! One worker thread per core, each with its own event loop, sockets, timer and randomness; nothing is shared on the
//! way of a request but one counter of the stage. A conductor thread starts the stages; whoever called [`start`]
//! receives [`Message`]s and stores them.

#![forbid(unsafe_code)]

#[cfg_attr(not(target_os = "linux"), path = "alarm_portable.rs")]
mod alarm;
mod arrivals;
mod attempt;
mod budget;
mod conductor;
mod deadline;
mod edge;
mod gate;
mod ids;
mod load;
mod maker;
mod message;
mod mix;
mod rate;
mod session;
mod shelf;
mod single;
mod stage_job;
mod think;
mod told_by_proxy;
mod uncounted;
mod worker;

pub use arrivals::Arrivals;
pub use attempt::BodyRead;
pub use conductor::{Ask, Director, Job, Route, Running, start, start_directed};
pub use edge::{AtEdge, Edge, Side};
pub use maker::{MakeError, RequestMaker};
pub use message::{Message, Progress, Rest, Stop};
pub use rate::Rate;
pub use single::{Got, Single, get, get_whole, post, single};
pub use uncounted::Uncounted;
