//! Control messages of `recvmsg` and `sendmsg`: the stamps that travel beside the data.

use libc::{c_int, c_void};

/// Room for the control messages we ask for: three timespecs and one extended error with its address.
pub(super) const CONTROL_BYTES: usize = 160;

/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_ACK` of `linux/errqueue.h`.
pub(super) const TSTAMP_SND: u32 = 0;
pub(super) const TSTAMP_ACK: u32 = 2;
const ORIGIN_TIMESTAMPING: u8 = 4;

/// A buffer for control messages, aligned as the kernel wants it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub(super) struct Control(pub [u8; CONTROL_BYTES]);

impl Control {
    pub(super) const EMPTY: Self = Self([0; CONTROL_BYTES]);
}

/// What the control messages of one message said.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said {
    /// A stamp on the wall clock.
    pub stamp: Option<i64>,
    /// Kind and byte counter of a transmit stamp.
    pub transmit: Option<(u32, u32)>,
}

/// Reads all control messages of a message that the kernel has filled.
pub(super) fn parse(message: &libc::msghdr) -> Said {
    let mut said = Said::default();
    // SAFETY: the kernel set msg_controllen to what it wrote, and the CMSG macros stay inside that.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return null or a whole header inside the control buffer, followed
        // by the data its length announces; the buffer is aligned for headers, and data is read unaligned.
        unsafe {
            let data = libc::CMSG_DATA(header);
            match ((*header).cmsg_level, (*header).cmsg_type) {
                // One timespec, or three of which the first is the software stamp.
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS | libc::SCM_TIMESTAMPING) => {
                    let at = data.cast::<libc::timespec>().read_unaligned();
                    if at.tv_sec != 0 {
                        said.stamp = Some(at.tv_sec * 1_000_000_000 + at.tv_nsec);
                    }
                }
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                    let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                    if error.ee_origin == ORIGIN_TIMESTAMPING {
                        said.transmit = Some((error.ee_info, error.ee_data));
                    }
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    said
}

/// Writes one control message that asks for transmit stamps of the data it travels with; returns its length.
pub(super) fn ask_for_transmit_stamps(control: &mut Control) -> usize {
    let flags: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_ACK;
    let size = size_of::<u32>() as u32;
    let header = std::ptr::from_mut(control).cast::<libc::cmsghdr>();
    // SAFETY: the buffer is aligned for a header and far larger than CMSG_SPACE of one integer.
    unsafe {
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SO_TIMESTAMPING as c_int;
        (*header).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(header).cast::<u32>().write_unaligned(flags);
        libc::CMSG_SPACE(size) as usize
    }
}

/// A message header over data and control buffers. Both must outlive it.
pub(super) fn message(
    parts: *mut libc::iovec,
    count: usize,
    control: *mut c_void,
    control_len: usize,
) -> libc::msghdr {
    // SAFETY: msghdr is integers and pointers, for which zeros are valid; all used fields are set below.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts;
    message.msg_iovlen = count as _;
    message.msg_control = control;
    message.msg_controllen = control_len as _;
    message
}
