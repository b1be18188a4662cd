//! Secrets out of a command line.

use std::borrow::Cow;

use super::{REDACTED, body_json, header_value, name, url};

/// The arguments of a command without the secrets in headers, keys, bodies and URLs.
pub fn command_line(args: &[String]) -> Vec<String> {
    let mut clean = Vec::with_capacity(args.len());
    let mut waiting = None;
    for arg in args {
        if let Some(holds) = waiting.take() {
            clean.push(value(holds, arg).into_owned());
            continue;
        }
        match Flag::of(arg) {
            Some(Flag { holds, value: None, .. }) => {
                waiting = Some(holds);
                clean.push(arg.clone());
            }
            Some(Flag { holds, value: Some(given), before }) => {
                clean.push(format!("{before}{}", value(holds, given)));
            }
            None => clean.push(url(arg).into_owned()),
        }
    }
    clean
}

/// A flag whose value may be secret.
struct Flag<'a> {
    holds: Holds,
    /// The flag itself and the sign between it and its value.
    before: &'a str,
    /// The value, if it is in the same argument.
    value: Option<&'a str>,
}

#[derive(Clone, Copy)]
enum Holds {
    Header,
    Json,
    /// `PATH=VALUE` of a plan.
    Setting,
    /// `NAME:KEY=VALUE,…`.
    Workload,
    Variable,
    Path,
    Url,
    Secret,
}

impl<'a> Flag<'a> {
    fn of(arg: &'a str) -> Option<Self> {
        if let Some(rest) = arg.strip_prefix("-H") {
            let rest_from = 2 + usize::from(rest.starts_with('='));
            let value = (!rest.is_empty()).then(|| &arg[rest_from..]);
            return Some(Self { holds: Holds::Header, before: &arg[..rest_from.min(arg.len())], value });
        }
        let flag = arg.strip_prefix("--")?;
        let (flag, value) = match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (flag, None),
        };
        let holds = match flag {
            "header" => Holds::Header,
            "body-json" => Holds::Json,
            "set" => Holds::Setting,
            "workload" => Holds::Workload,
            "api-key-env" => Holds::Variable,
            "api-key-file" => Holds::Path,
            _ if name::is_secret_param(flag) => Holds::Secret,
            _ if value.is_some() => Holds::Url,
            _ => return None,
        };
        Some(Self { holds, before: &arg[..arg.len() - value.map_or(0, str::len)], value })
    }
}

fn value(holds: Holds, text: &str) -> Cow<'_, str> {
    match holds {
        Holds::Header => match text.split_once(':') {
            Some((name, value)) => {
                let trimmed = value.trim_start();
                let gap = &value[..value.len() - trimmed.len()];
                Cow::Owned(format!("{name}:{gap}{}", header_value(name, trimmed)))
            }
            None => Cow::Borrowed(REDACTED),
        },
        Holds::Json => body_json(text),
        Holds::Setting => match text.split_once('=') {
            Some((path, value)) => Cow::Owned(format!("{path}={}", setting(path, value))),
            None => url(text),
        },
        Holds::Workload => match text.split_once("body") {
            Some((before, _)) => Cow::Owned(format!("{before}body-json={REDACTED}")),
            None => Cow::Borrowed(text),
        },
        Holds::Variable if name::is_variable(text) => Cow::Borrowed(text),
        Holds::Path => Cow::Borrowed(text),
        Holds::Url => url(text),
        Holds::Variable | Holds::Secret => Cow::Borrowed(REDACTED),
    }
}

/// What a path of a plan is set to.
fn setting<'a>(path: &str, value: &'a str) -> Cow<'a, str> {
    let last = path.rsplit('.').next().unwrap_or_default();
    match last {
        // Written as TOML it is no JSON yet.
        "body_json" if value.trim_start().starts_with('{') => body_json(value),
        "body_json" => Cow::Borrowed(REDACTED),
        _ if path.contains("headers") || name::is_secret_param(last) => Cow::Borrowed(REDACTED),
        // A whole table may have anything in it.
        _ if value.trim_start().starts_with(['{', '[']) && value.contains('"') => Cow::Borrowed(REDACTED),
        _ => url(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leave_and_all_else_stays() {
        for (line, clean) in [
            ("ttft|run|http://h/v1|--concurrency|1,8", "ttft|run|http://h/v1|--concurrency|1,8"),
            ("--header|Authorization: Bearer s|--seed|1", "--header|Authorization: <redacted>|--seed|1"),
            ("--header=x-api-key:s", "--header=x-api-key:<redacted>"),
            (
                "-H|Cookie: a=b|-HX-Token: s|-H=x-run: 1",
                "-H|Cookie: <redacted>|-HX-Token: <redacted>|-H=x-run: 1",
            ),
            ("-H|garbage", "-H|<redacted>"),
            ("--api-key|s|--api-key=s", "--api-key|<redacted>|--api-key=<redacted>"),
            (
                "--api-key-env|OPENAI_API_KEY|--api-key-env=sk-1",
                "--api-key-env|OPENAI_API_KEY|--api-key-env=<redacted>",
            ),
            ("--api-key-file|/etc/key", "--api-key-file|/etc/key"),
            ("https://u:p@h/?key=k", "https://<redacted>@h/?key=<redacted>"),
            ("--proxy=http://u:p@h:3128", "--proxy=http://<redacted>@h:3128"),
            ("--nats|nats://u:p@h", "--nats|nats://<redacted>@h"),
            ("--max-tokens|64|--timeout-first-token|2s", "--max-tokens|64|--timeout-first-token|2s"),
            (r#"--body-json|{"api_key":"s"}"#, r#"--body-json|{"api_key":"<redacted>"}"#),
            (
                "--set|stages.0.rate=2|--set=endpoint.api_key=s",
                "--set|stages.0.rate=2|--set=endpoint.api_key=<redacted>",
            ),
            ("--set|endpoint.headers.x-team=s", "--set|endpoint.headers.x-team=<redacted>"),
            (r#"--set|endpoint={api_key="s"}"#, "--set|endpoint=<redacted>"),
            ("--set|endpoint.url=https://u:p@h", "--set|endpoint.url=https://<redacted>@h"),
            (
                r#"--set|workloads.0.body_json={"api_key":"s"}"#,
                r#"--set|workloads.0.body_json={"api_key":"<redacted>"}"#,
            ),
            (r#"--set|workloads.0.body_json='{"api_key":"s"}'"#, "--set|workloads.0.body_json=<redacted>"),
            ("--set|stages.0.concurrency=[1, 8]", "--set|stages.0.concurrency=[1, 8]"),
            ("--workload|a:max-tokens=2,body-json={x}", "--workload|a:max-tokens=2,body-json=<redacted>"),
            ("--header", "--header"),
            ("-H|", "-H|<redacted>"),
        ] {
            let split = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(command_line(&split(line)), split(clean));
        }
    }
}
