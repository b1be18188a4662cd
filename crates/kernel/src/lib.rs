//! What we ask of the operating system: clocks, kernel stamps, precise timers, scheduling. The only crate with unsafe code.
