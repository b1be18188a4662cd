//! What we ask of the operating system: clocks, kernel stamps on sockets, precise timers, scheduling.
//!
//! The only crate with unsafe code, and the only one that reads a clock. Stamps exist on Linux; elsewhere the
//! same functions answer without them, and [`Anchor`] says so.

mod anchor;
mod clock;
mod host;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
mod wall;
mod watch;

pub use anchor::Anchor;
pub use clock::{mono_now, process_cpu_now, real_now, thread_cpu_now};
pub use host::{
    cpu_count, cpu_governor, host_name, kernel_release, local_ports, outlive_file_size_limit,
    raise_open_files, resident_bytes,
};
#[cfg(target_os = "linux")]
pub use linux::{
    host::{pin_to_cpu, request_realtime, set_timer_slack, yield_to_others},
    socket::{
        enable_receive_stamps, enable_transmit_stamps, is_connected, limit_local_ports, recv_stamped,
        recv_stamped_buf, send_stamped, take_transmit_stamps, tcp_facts,
    },
    timer::Timer,
};
#[cfg(not(target_os = "linux"))]
pub use portable::{
    enable_receive_stamps, enable_transmit_stamps, is_connected, limit_local_ports, pin_to_cpu, recv_stamped,
    recv_stamped_buf, request_realtime, send_stamped, set_timer_slack, take_transmit_stamps, tcp_facts,
    yield_to_others,
};
pub use wall::WallOffset;
pub use watch::{AsyncFd, Interest, Owner, watch};

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Bytes read; 0 at the end of the stream.
    pub len: usize,
    /// The kernel's receive stamp of the last byte, on the wall clock (nanoseconds since 1970).
    pub kernel_real_ns: Option<i64>,
}

/// The kernel's stamps of one send, on the wall clock (nanoseconds since 1970).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransmitStamps {
    /// Handed to the network device.
    pub device: Option<i64>,
    /// Acknowledged by the peer's kernel.
    pub acked: Option<i64>,
}
