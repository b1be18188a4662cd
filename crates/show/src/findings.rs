//! Findings as a list: a mark, the claim, its evidence, what to do.

use ttft_judge::{Finding, Level};

use crate::escape;
use crate::style::{Ink, Style, wrap};

/// One entry a finding, in the order given.
pub fn findings_text(findings: &[Finding], style: &Style) -> String {
    findings.iter().map(|finding| finding_text(finding, *style)).collect()
}

fn finding_text(finding: &Finding, style: Style) -> String {
    let (mark, ink) = match finding.level {
        Level::Ok => ("ok  ", Ink::Good),
        Level::Note => ("note", Ink::Plain),
        Level::Warn => ("warn", Ink::Doubtful),
        Level::Bad => ("BAD ", Ink::Bad),
    };
    let mut claim = escape(&finding.what).into_owned();
    if let Some(evidence) = &finding.evidence {
        claim = claim + " – " + &escape(evidence);
    }
    if let Some(confidence) = finding.confidence {
        claim = format!("{claim}; confidence {}", confidence.name());
    }
    let line = wrap("      ", &claim, style.width);
    let mut out = style.paint(ink, mark) + &line[4..];
    if let Some(remedy) = &finding.remedy {
        let line = wrap("      → ", &escape(remedy), style.width);
        out.push_str(&style.paint(Ink::Faint, line.trim_end_matches('\n')));
        out.push('\n');
    }
    out
}
