//! No file of a run holds a secret, wherever it was given and whoever repeats it.

use std::fs;

use ttft_model::{ErrorClass, Failure, Header, Plan};
use ttft_store::{Appended, Place, RunFolder, names, redact};

use crate::sample::{plan, record, run};

const SECRETS: [&str; 7] = [
    "hunter-header",
    "hunter-bearer",
    "hunter-password",
    "hunter-query",
    "hunter-body",
    "hunter-flag",
    "hunter-env",
];

/// A plan with a secret in every place that can hold one.
fn telling_plan() -> Plan {
    let mut plan = plan();
    let header = |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned() };
    "https://me:hunter-password@h/v1?alt=sse&key=hunter-query".clone_into(&mut plan.endpoints[0].url);
    plan.endpoints[0].headers = vec![
        header("Authorization", "Bearer hunter-bearer"),
        header("x-api-key", "hunter-header"),
        header("x-run", "1"),
    ];
    plan.workloads[1].body_json =
        Some("{\"user\": {\"api_key\": \"hunter-body\"}, \"max_tokens\": 5}".to_owned());
    plan
}

#[test]
fn no_file_holds_a_secret() {
    let root = tempfile::tempdir().unwrap();
    let plan = telling_plan();
    let mut run = run(&plan);
    run.command = [
        "ttft",
        "run",
        plan.endpoints[0].url.as_str(),
        "--header",
        "Authorization: Bearer hunter-bearer",
        "-Hx-api-key: hunter-header",
        "--api-key=hunter-flag",
        "--body-json",
        plan.workloads[1].body_json.as_deref().unwrap(),
        "--prompt",
        "my key is hunter-header",
    ]
    .map(str::to_owned)
    .to_vec();
    run.server = Some("hunter-header".to_owned());

    let mut folder = RunFolder::create(Place::Exactly(root.path()), &plan, &run).unwrap();
    folder.keep_out("hunter-env");
    let mut told = record(1);
    let message = format!("401: {} are no good keys", SECRETS[..5].join(", "));
    told.answer.failure =
        Some(Failure { class: ErrorClass::HttpAuth, code: Some("hunter-env".to_owned()), message });
    told.answer.response_id = Some("hunter-env".to_owned());
    assert_eq!(folder.append(&[told]).unwrap(), Appended::Fine);
    run.stopped_by = Some("hunter-env was refused".to_owned());
    folder.finish(&run).unwrap();

    for name in [names::PLAN, names::RUN, names::REQUESTS] {
        let bytes = fs::read(root.path().join(name)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in SECRETS {
            assert!(!text.contains(secret), "{name} holds {secret}: {text}");
        }
        assert!(text.contains(redact::REDACTED), "{name}");
    }
}

#[test]
fn a_redacted_plan_is_a_plan() {
    let root = tempfile::tempdir().unwrap();
    let plan = telling_plan();
    let folder = RunFolder::create(Place::Exactly(root.path()), &plan, &run(&plan)).unwrap();
    let text = fs::read_to_string(folder.path().join(names::PLAN)).unwrap();
    assert_eq!(toml::from_str::<Plan>(&text).unwrap(), redact::plan(&plan));
    assert!(text.contains("# Fill in what is <redacted> first."), "{text}");
    assert!(text.contains("url = \"https://<redacted>@h/v1?alt=sse&key=<redacted>\""), "{text}");
    assert!(text.contains("env = \"OPENAI_API_KEY\""), "names of variables stay: {text}");
}
