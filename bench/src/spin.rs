//! A process that wants a core for itself.

/// Computes for nobody until killed.
pub(crate) fn forever() -> ! {
    loop {
        std::hint::spin_loop();
    }
}
