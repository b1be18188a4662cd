//! How long a proxy waited for its upstream's response head, from the headers it adds.

/// Names that `server-timing` entries have for it, the clearest first.
const ENTRIES: [&str; 5] = ["upstream", "origin", "app", "total", "inference"];

/// Milliseconds from `x-envoy-upstream-service-time`, else from an entry of `server-timing`.
pub(crate) fn upstream_head_ms<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<f64> {
    let time = |text: &str| text.trim().parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0);
    header("x-envoy-upstream-service-time").and_then(time).or_else(|| {
        let entries = header("server-timing")?;
        ENTRIES.iter().find_map(|wanted| {
            let entry = entries.split(',').find(|entry| {
                entry.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(wanted))
            })?;
            let duration = entry.split(';').find_map(|part| part.trim().strip_prefix("dur="))?;
            time(duration.trim_matches('"'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_proxies() {
        let of = |wanted: &'static str, value: &'static str| {
            upstream_head_ms(move |name| (name == wanted).then_some(value))
        };
        assert_eq!(of("x-envoy-upstream-service-time", "214"), Some(214.0));
        assert_eq!(of("server-timing", "cache;desc=miss, origin;dur=12.5, total;dur=80"), Some(12.5));
        assert_eq!(of("server-timing", "Total;desc=\"all\";dur=\"80\""), Some(80.0));
        for odd in ["", "total", "total;dur=", "total;dur=x", "total;dur=-1", "total;dur=NaN", "other;dur=5"]
        {
            assert_eq!(of("server-timing", odd), None, "{odd}");
        }
    }
}
