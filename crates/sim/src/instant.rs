//! Answers that need no engine: pages, errors in the shapes of vLLM, refusals on purpose.

use serde_json::json;

use crate::fault::Misdeeds;

/// An answer that is ready at once.
pub(crate) struct Instant {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    /// Further header lines.
    pub(crate) extra: &'static str,
    pub(crate) body: String,
}

impl Instant {
    pub(crate) fn json(status: u16, body: &serde_json::Value) -> Self {
        Self { status, content_type: "application/json", extra: "", body: body.to_string() }
    }

    /// An error in the shape of vLLM.
    pub(crate) fn error(status: u16, kind: &str, param: Option<&str>, message: &str) -> Self {
        Self::json(
            status,
            &json!({"error": {"message": message, "type": kind, "param": param, "code": status}}),
        )
    }

    pub(crate) fn bad_request(param: &str, message: &str) -> Self {
        Self::error(400, "BadRequestError", Some(param), message)
    }
}

/// The answer to a request without the right key.
pub(crate) fn locked() -> Instant {
    Instant::json(401, &json!({"error": "Unauthorized"}))
}

/// The answer of a fault that refuses the request at once.
pub(crate) fn deliberate_refusal(misdeeds: &Misdeeds) -> Option<Instant> {
    if let Some(status) = misdeeds.status {
        return Some(match status {
            401 => locked(),
            404 => Instant::error(404, "NotFoundError", Some("model"), "The model does not exist."),
            429 => Instant {
                extra: "retry-after: 1\r\n",
                ..Instant::error(
                    429,
                    "TooManyRequestsError",
                    None,
                    "Rate limit reached. Please try again later.",
                )
            },
            503 => Instant {
                extra: "retry-after: 1\r\n",
                ..Instant::error(
                    503,
                    "Service Unavailable",
                    None,
                    "The engine is currently busy and cannot accept new requests. Please try again later or on a \
                     different instance.",
                )
            },
            _ => Instant::error(status, "InternalServerError", None, "EngineCore encountered an issue."),
        });
    }
    if misdeeds.html {
        let body = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
            <center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
            .to_owned();
        return Some(Instant { status: 502, content_type: "text/html", extra: "", body });
    }
    misdeeds.json_error.then(|| {
        let error = json!({"message": "EngineCore encountered an issue.", "type": "InternalServerError",
            "param": null, "code": 500});
        Instant::json(200, &json!({"error": error}))
    })
}
