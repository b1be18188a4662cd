//! The edges of the warm-up and of the stages, told while nothing is under way.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use ttft_drive::{Job, Side, Stop, start};

use crate::run::{closed, finish, job, plan, stage};
use crate::scripted::{answer, serve};

#[test]
fn edges_are_told_between_the_parts_with_what_ended_well() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let addr = serve(move |socket| {
        counter.fetch_add(1, Ordering::SeqCst);
        socket.write_all(answer().as_bytes())
    });
    let mut plan = plan(addr, vec![stage(closed(3), Some(20), None), stage(closed(2), Some(7), None)]);
    plan.warmup = 4;
    let (tell, told) = channel();
    let at_edge = Box::new(move |edge| tell.send((edge, asked.load(Ordering::SeqCst))).unwrap());
    finish(start(Job { at_edge: Some(at_edge), ..job(plan, 2) }, Stop::default()));
    let told: Vec<_> =
        told.iter().map(|(edge, asked)| (edge.stage, edge.side == Side::End, edge.ok, asked)).collect();
    assert_eq!(
        told,
        [
            (None, false, 0, 0),
            (None, true, 4, 4),
            (Some(0), false, 0, 4),
            (Some(0), true, 20, 24),
            (Some(1), false, 0, 24),
            (Some(1), true, 7, 31),
        ]
    );
}
