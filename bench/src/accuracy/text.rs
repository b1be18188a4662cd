//! The rows as tables.

use crate::accuracy::case::Row;
use crate::noise::NOISY_PERCENT;
use crate::table::{Table, figure};

/// Errors, conditions and remarks.
pub(crate) fn of(rows: &[Row]) -> String {
    format!(
        "{}\nOver all requests that ended well and whose first token did not share its read (`flagged`: the others). p95, \
         p99 and max are of the error's size. user clock: what stamps of the process itself would give. first, later: \
         the first request on each connection, and all others. -busy: two busy loops on the client's core. -new: a \
         connection for each request, made inside ttft.\n\n{}\n{}",
        errors(rows),
        conditions(rows),
        reasons(rows)
    )
}

fn errors(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "streams × tokens/s",
        "requests",
        "flagged",
        "ttft min",
        "p50",
        "p95",
        "p99",
        "max",
        "ttft_sent p50",
        "p99",
        "max",
        "user clock p50",
        "p99",
        "max",
        "first p99",
        "max",
        "later p99",
        "max",
    ]);
    for row in rows {
        let e = &row.errors;
        let share = e.flagged as f64 / e.joined.max(1) as f64 * 100.0;
        let figures = [
            e.ttft.min,
            e.ttft.p50,
            e.ttft.p95,
            e.ttft.p99,
            e.ttft.max,
            e.ttft_sent.p50,
            e.ttft_sent.p99,
            e.ttft_sent.max,
            e.user_clock.p50,
            e.user_clock.p99,
            e.user_clock.max,
            e.first_on_connection.p99,
            e.first_on_connection.max,
            e.later_on_connection.p99,
            e.later_on_connection.max,
        ];
        let head = [row.name.clone(), e.joined.to_string(), format!("{share:.2} %")];
        table.row(head.into_iter().chain(figures.map(|us| figure(us, 0))));
    }
    table.text()
}

fn conditions(rows: &[Row]) -> String {
    let mut table = Table::new(&[
        "streams × tokens/s",
        "sent",
        "failed",
        "tokens/s",
        "read lag p99 µs",
        "worker CPU %",
        "verdict",
        "engine late p50 µs",
        "p99",
        "max",
        "others on core 0 %",
        "core 1 %",
        "stolen %",
    ]);
    for row in rows {
        table.row([
            row.name.clone(),
            row.sent.to_string(),
            row.failed.to_string(),
            figure(row.events_per_s, 0),
            figure(row.read_lag_p99, 0),
            figure(row.client_cpu_percent, 0),
            row.verdict.to_owned(),
            figure(row.engine_late.p50, 0),
            figure(row.engine_late.p99, 0),
            figure(row.engine_late.max, 0),
            figure(Some(row.noise.server_core), 1),
            figure(Some(row.noise.client_core), 1),
            figure(Some(row.noise.stolen), 1),
        ]);
    }
    table.text()
}

fn reasons(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        for reason in &row.reasons {
            text.extend([&row.name, ": ", row.verdict, ": ", reason, "\n"]);
        }
        if row.noise.is_noisy() {
            let share = format!("{NOISY_PERCENT:.0} %");
            text.extend([&row.name, ": noisy: others used more than ", &share, " of a core\n"]);
        }
    }
    text
}
