//! Ctrl-C and its kin: the first asks for an end in order, the second for an end at once.

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use ttft_drive::Stop;

use crate::output;

/// Listens on a thread of its own until the program ends.
pub(crate) fn listen(stop: Stop) {
    std::thread::spawn(move || {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            let mut next = async || {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            };
            next().await;
            output::note("\nstopping: requests under way may end; press Ctrl-C again to give them up");
            stop.in_order();
            next().await;
            output::note("\ngiving up what is under way; results are kept");
            stop.at_once();
        });
    });
}
