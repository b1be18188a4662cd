//! The knees of a sweep, in a few lines.

use ttft_judge::{Knee, KneePoint};

use crate::escape;
use crate::number::figures;
use crate::style::{Ink, Style, wrap};

/// A block for each sweep; empty where there was no sweep at all.
pub(crate) fn text(knee: &Knee, style: Style) -> String {
    if knee.levels < 2 {
        return String::new();
    }
    let mut out = one(knee, style);
    for other in &knee.others {
        out.push_str(&one(other, style));
    }
    out
}

fn one(knee: &Knee, style: Style) -> String {
    let of = knee.sweep.as_deref().map_or_else(String::new, |of| escape(of).into_owned());
    let title = if of.is_empty() { "knees".to_owned() } else { format!("knees of {of}") };
    let mut out = style.paint(Ink::Strong, &title) + "\n";
    for (name, found) in [("tail    ", &knee.tail_knee), ("capacity", &knee.capacity_knee)] {
        if let Some(knee) = found {
            out.push_str(&point(name, knee, style));
        }
    }
    if !knee.reason.is_empty() {
        out.push_str(&wrap("  - ", &escape(&knee.reason), style.width));
    }
    out
}

fn point(name: &str, knee: &KneePoint, style: Style) -> String {
    let axis = knee.axis.name();
    let [low, high] = knee.ci95;
    let place = match knee.above {
        Some(above) => format!("at {axis} {}, above {}", level(knee.level), level(above)),
        None => format!("at {axis} {}", level(knee.level)),
    };
    let interval = if low < high {
        format!(" [95 %: {} to {}]", level(low), level(high))
    } else {
        format!(" [in {:.0} % of replicates]", (knee.confidence * 100.0).floor())
    };
    let line =
        wrap(&format!("  {name}  "), &format!("{place}{interval}: {}", escape(&knee.evidence)), style.width);
    let mut out = line.replacen(name, &style.paint(Ink::Doubtful, name), 1);
    if let Some(cause) = &knee.probable_cause {
        out.push_str(&wrap("      → ", &format!("probably {}", escape(cause)), style.width));
    }
    if let Some(check) = &knee.littles_law {
        out.push_str(&wrap("      - ", &escape(&check.says), style.width));
    }
    out
}

/// A level without digits that say nothing.
fn level(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { figures(value) }
}
