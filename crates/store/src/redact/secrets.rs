//! Secrets known by their value, so that a server that repeats one cannot bring it into a file.

use std::borrow::Cow;

use ttft_model::{Endpoint, Plan, Workload};

use super::{REDACTED, json, name, url};

/// Texts that must never be written. Shows none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

/// Shorter texts are replaced nowhere: they would be found in harmless words.
const SHORTEST: usize = 6;

impl Secrets {
    /// The secrets that a plan holds.
    pub fn of(plan: &Plan) -> Self {
        let mut secrets = Self::default();
        for secret in
            plan.endpoints.iter().flat_map(|endpoint| Self::of_requests(endpoint, &plan.workloads).0)
        {
            secrets.add(&secret);
        }
        for source in plan.sources.server.iter().chain(&plan.sources.gpu) {
            url::each_secret(source, &mut |secret| secrets.add_with_tail(secret, ':'));
        }
        secrets
    }

    /// The secrets that requests of these workloads hold.
    pub fn of_requests(endpoint: &Endpoint, workloads: &[Workload]) -> Self {
        let mut secrets = Self::default();
        url::each_secret(&endpoint.url, &mut |secret| secrets.add_with_tail(secret, ':'));
        for header in &endpoint.headers {
            if name::is_secret_header(&header.name) {
                secrets.add_with_tail(&header.value, ' ');
            }
        }
        for body in workloads.iter().filter_map(|workload| workload.body_json.as_deref()) {
            json::each_secret(body, &mut |secret| secrets.add(secret));
        }
        secrets
    }

    /// Adds one.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.len() >= SHORTEST && secret != REDACTED && !self.0.iter().any(|known| known == secret) {
            self.0.push(secret.to_owned());
            // A secret that holds another one goes first, or its rest would stay.
            self.0.sort_by_key(|known| std::cmp::Reverse(known.len()));
        }
    }

    /// Adds a text, and what follows the mark alone: the password of `user:password`, the key of `Bearer key`.
    fn add_with_tail(&mut self, secret: &str, mark: char) {
        self.add(secret);
        if let Some((_, tail)) = secret.split_once(mark) {
            self.add(tail);
        }
    }

    /// The text with every known secret replaced.
    pub fn scrub<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for secret in &self.0 {
            if clean.contains(secret.as_str()) {
                clean = Cow::Owned(clean.replace(secret.as_str(), REDACTED));
            }
        }
        clean
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_are_replaced_the_longest_first() {
        let mut secrets = Secrets::default();
        for secret in ["sk-abcdef", "sk-abcdef-0123", "short", ""] {
            secrets.add(secret);
        }
        secrets.add_with_tail("Bearer tokenvalue", ' ');
        for (text, clean) in [
            ("key sk-abcdef-0123 and sk-abcdef", "key <redacted> and <redacted>"),
            ("short", "short"),
            ("got tokenvalue", "got <redacted>"),
            ("the Bearer scheme", "the Bearer scheme"),
        ] {
            assert_eq!(secrets.scrub(text), clean);
        }
        assert_eq!(format!("{secrets:?}"), "Secrets(4)");
    }
}
