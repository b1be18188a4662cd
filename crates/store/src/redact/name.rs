//! Which names announce a secret.

/// Whether a header of that name holds a secret.
pub(super) fn is_secret_header(name: &str) -> bool {
    const MARKS: [&str; 12] = [
        "auth",
        "token",
        "secret",
        "key",
        "cookie",
        "passw",
        "credential",
        "signature",
        "session",
        "jwt",
        "bearer",
        "private",
    ];
    let name = name.to_ascii_lowercase();
    MARKS.iter().any(|mark| name.contains(mark))
}

/// Whether a query parameter, JSON key or flag of that name holds a secret. Tokens are what this tool is about,
/// so `max_tokens` and its kin are none.
pub(super) fn is_secret_param(name: &str) -> bool {
    const MARKS: [&str; 10] = [
        "secret",
        "passw",
        "passphrase",
        "credential",
        "authorization",
        "apikey",
        "signature",
        "bearer",
        "jwt",
        "cookie",
    ];
    const WORDS: [&str; 6] = ["key", "token", "auth", "pwd", "sig", "code"];
    const ENDS: [&str; 2] = ["key", "token"];
    if is_generation_setting(name) {
        return false;
    }
    let words = words(name);
    let joined = words.concat();
    MARKS.iter().any(|mark| joined.contains(mark))
        || words.iter().any(|word| WORDS.contains(&word.as_str()))
        || ENDS.iter().any(|end| joined.ends_with(end))
}

/// Names that speak of a model's tokens or of a cache, not of access.
fn is_generation_setting(name: &str) -> bool {
    const SPECIAL: [&str; 10] =
        ["stop", "eos", "bos", "pad", "unk", "mask", "first", "start", "end", "image"];
    let words = words(name);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., "tokens"] | ["cache", "key"] | ["prompt", "cache", "key"] => true,
        [.., before, "token"] => SPECIAL.contains(before),
        _ => false,
    }
}

/// `x-apiKey` as `x`, `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether this can be the name of an environment variable.
pub fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_go_by_their_words() {
        for name in [
            "key",
            "api_key",
            "api-key",
            "apiKey",
            "apikey",
            "token",
            "access_token",
            "authToken",
            "X-Amz-Signature",
            "X-Amz-Credential",
            "X-Amz-Security-Token",
            "client_secret",
            "password",
            "subscription-key",
            "sig",
            "code",
            "Authorization",
            "aws_secret_access_key",
            "hf_token",
        ] {
            assert!(is_secret_param(name), "{name}");
        }
        for name in [
            "max_tokens",
            "max_completion_tokens",
            "stop_token",
            "eos_token",
            "prompt_cache_key",
            "tokenizer",
            "api-version",
            "model",
            "stream",
            "skip_special_tokens",
            "max-total-tokens",
            "timeout-first-token",
            "alt",
            "top_k",
            "keyword",
            "authors",
            "encode",
        ] {
            assert!(!is_secret_param(name), "{name}");
        }
    }

    #[test]
    fn a_key_is_no_variable() {
        assert!(is_variable("OPENAI_API_KEY"));
        for text in ["sk-abc123", "1A", "a b", &"A".repeat(65)] {
            assert!(!is_variable(text), "{text}");
        }
    }
}
