//! Points and lengths of time as whole nanoseconds, and the stamps that the transport puts on bytes.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// Nanoseconds on the host's monotonic clock; as a difference, a duration that may be negative.
///
/// Inside one process the axis is `CLOCK_MONOTONIC` itself. On disk it is rebased so that zero is the start
/// of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    /// The zero of the axis, or an empty duration.
    pub const ZERO: Self = Self(0);

    /// Whole milliseconds as a duration.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms * 1_000_000)
    }

    /// Seconds as a duration, rounded to the nanosecond.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9).round() as i64)
    }

    /// The duration in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The duration for the standard library; a negative one becomes zero.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0.max(0) as u64)
    }
}

// Lengths come from plans and traces: what is too long stays at the end of the axis.
impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// Who took a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StampSource {
    /// The kernel, when the segment that held the last byte of the read arrived.
    Kernel,
    /// This process, when its read returned: the kernel gave no stamp, or one that could not be trusted.
    User,
}

/// When bytes arrived: the kernel's word if there is one, and always our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The kernel's receive stamp, converted to the monotonic axis.
    pub kernel: Option<Nanos>,
    /// When the read returned to this process.
    pub user: Nanos,
}

impl Stamp {
    /// A stamp that only this process took.
    pub const fn user(at: Nanos) -> Self {
        Self { kernel: None, user: at }
    }

    /// The instant to compute with: the kernel's when present.
    pub fn at(self) -> Nanos {
        self.kernel.unwrap_or(self.user)
    }

    /// Which clock [`Stamp::at`] comes from.
    pub fn source(self) -> StampSource {
        if self.kernel.is_some() { StampSource::Kernel } else { StampSource::User }
    }

    /// How late this process was: user − kernel. `None` without a kernel stamp.
    pub fn lag(self) -> Option<Nanos> {
        self.kernel.map(|kernel| self.user - kernel)
    }
}
