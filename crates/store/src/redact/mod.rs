//! Secrets out of everything that is written: headers, URLs, request bodies, command lines.
//!
//! What looks secret goes by its name, rather too often than too seldom: a wrong guess costs one value to fill
//! in before a plan is repeated, a missed one is a leak.

mod command;
mod json;
mod line;
mod name;
mod secrets;
mod url;

use std::borrow::Cow;

use ttft_model::{ApiKey, Plan, Run};

pub use command::command_line;
pub use json::body_json;
pub use line::line;
pub use name::is_variable;
pub use secrets::Secrets;
pub use url::url;

/// What stands where a secret was.
pub const REDACTED: &str = "<redacted>";

/// The value of a header, or [`REDACTED`] if its name looks secret.
pub fn header_value<'a>(name: &str, value: &'a str) -> Cow<'a, str> {
    if name::is_secret_header(name) { Cow::Borrowed(REDACTED) } else { url(value) }
}

/// A plan without its secrets. Names of variables and files that hold keys stay.
pub fn plan(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for endpoint in &mut plan.endpoints {
        endpoint.url = url(&endpoint.url).into_owned();
        for header in &mut endpoint.headers {
            header.value = header_value(&header.name, &header.value).into_owned();
        }
        if let ApiKey::Env(name) = &mut endpoint.api_key
            && !name::is_variable(name)
        {
            // Somebody gave the key itself where its variable's name belongs.
            REDACTED.clone_into(name);
        }
    }
    for source in plan.sources.server.iter_mut().chain(&mut plan.sources.gpu) {
        *source = url(source).into_owned();
    }
    for workload in &mut plan.workloads {
        if let Some(text) = &mut workload.body_json {
            *text = body_json(text).into_owned();
        }
    }
    plan
}

/// A run's facts without secrets, neither those that show by their names nor the known ones.
pub fn run(run: &Run, known: &Secrets) -> Run {
    let mut run = run.clone();
    run.plan = plan(&run.plan);
    run.command = command_line(&run.command).iter().map(|arg| known.scrub(arg).into_owned()).collect();
    for text in [&mut run.stopped_by, &mut run.server].into_iter().flatten() {
        *text = known.scrub(text).into_owned();
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_go_by_their_names() {
        for name in ["Authorization", "x-api-key", "API-KEY", "Cookie", "X-Auth-Token", "x-secret-thing"] {
            assert_eq!(header_value(name, "hunter22"), REDACTED, "{name}");
        }
        for name in ["x-run", "accept", "anthropic-version", "user-agent"] {
            assert_eq!(header_value(name, "value"), "value", "{name}");
        }
        assert_eq!(header_value("referer", "http://u:p@h/"), "http://<redacted>@h/");
    }
}
