//! How an open loop's requests started, in a line.

use ttft_judge::arrivals::{Arrivals, ODD};

use crate::number::{figures, time};
use crate::style::{Ink, Style, wrap};

/// The line; empty of too few arrivals.
pub(crate) fn text(arrivals: &Arrivals, style: Style) -> String {
    let (Some(rate), Some(cv)) = (arrivals.rate, arrivals.cv) else { return String::new() };
    let mut parts = vec![
        format!("{}/s of {} asked", figures(rate), figures(arrivals.asked_rate)),
        format!("gaps {} in the mean", time(arrivals.mean_gap_ms)),
        format!("variation {cv:.2} of {:.2} asked", arrivals.asked_cv),
    ];
    let mut odd = false;
    if let (Some(distance), Some(p)) = (arrivals.ks_distance, arrivals.ks_p_value) {
        odd = p < ODD;
        let p = if p < 0.001 { "below 0.001".to_owned() } else { format!("{p:.3}") };
        parts.push(format!("Kolmogorov-Smirnov distance {distance:.4}, p {p}"));
    }
    let mut out = wrap("arrivals  ", &parts.join(" · "), style.width);
    if odd {
        let note = "the starts are not of the process that was asked for: see send lag and --max-in-flight";
        out.push_str(&wrap(&format!("  {} ", style.paint(Ink::Doubtful, "-")), note, style.width));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { color: false, width: 100 };

    #[test]
    fn a_line_for_what_was_kept_and_two_for_what_was_not() {
        let kept = Arrivals {
            asked_rate: 100.0,
            rate: Some(99.6),
            n: 5_999,
            mean_gap_ms: Some(10.04),
            cv: Some(0.987),
            asked_cv: 1.0,
            ks_distance: Some(0.0081),
            ks_p_value: Some(0.8265),
        };
        assert_eq!(
            text(&kept, PLAIN),
            "arrivals  99.6/s of 100 asked · gaps 10.0 ms in the mean · variation 0.99 of 1.00 asked ·\n          \
             Kolmogorov-Smirnov distance 0.0081, p 0.827\n"
        );
        let late = Arrivals { ks_p_value: Some(1e-9), ..kept };
        assert!(text(&late, PLAIN).contains("p below 0.001\n  - the starts are not of the process"));
        assert_eq!(text(&Arrivals::default(), PLAIN), "");
    }
}
