//! Plans as they are written, flags over them, and what comes of both.

use ttft_model::{Arrival, Calibration, Lengths, Load, Plan, Prompt, Stop, Think};

use super::{Draft, FileError, Overlay, Part, TEMPLATE};

fn plan_of(draft: Draft) -> Result<Plan, FileError> {
    draft.plan(&|url| url.contains("/messages").then(|| "anthropic-messages".to_owned()))
}

fn read(text: &str) -> Result<Plan, FileError> {
    plan_of(Draft::read(text, "ttft.toml")?)
}

#[track_caller]
fn good(text: &str) -> Plan {
    read(text).unwrap_or_else(|error| panic!("{error}"))
}

fn names(plan: &Plan) -> Vec<&str> {
    plan.stages.iter().map(|stage| stage.name.as_str()).collect()
}

/// Lays what flags say over a file.
fn with_flags(text: &str, flags: impl FnOnce(&mut Overlay)) -> Result<Plan, FileError> {
    let mut overlay = Overlay::default();
    flags(&mut overlay);
    let mut draft = if text.is_empty() { Draft::new() } else { Draft::read(text, "ttft.toml")? };
    draft.lay(&overlay)?;
    plan_of(draft)
}

/// The file that a plan is written to, and the plan that is read from it.
fn again(plan: &Plan) -> Plan {
    good(&toml::to_string(plan).unwrap())
}

#[test]
fn nothing_is_the_usual_sweep_of_the_built_in_engine() {
    let plan = good("");
    assert_eq!(names(&plan), ["c1", "c8", "c16", "c32"]);
    assert_eq!(plan.endpoint().url, "sim:default");
    assert_eq!(plan.stages[0].stop, Stop { requests: None, duration: Some("10s".parse().unwrap()) });
    assert_eq!(plan.workloads, [ttft_model::Workload::default()]);
    assert_eq!(plan, plan_of(Draft::new()).unwrap());
    assert_eq!(again(&plan), plan);
}

/// A file with nearly everything.
const FULL: &str = r#"
name = "nightly"
seed = 7
warmup = "1k"
settle = 2
precision = "5%"
slo = "ttft_p95<2s"

[[endpoints]]
name = "a"
url = "http://a/v1/messages"
headers = { x-team = "load" }
resolve = ["a:80:127.0.0.1"]
api_key = { env = "A_KEY" }

[[endpoints]]
name = "b"
url = "http://b"
dialect = "tgi-generate"
api_key = "none"
http = "2"

[timeouts]
first_token = "5s"

[budget]
max_total_tokens = "1M"
price_in = 3
price_out = 15.0
max_cost = 10

[[workloads]]
name = "short"
prompt_tokens = "uniform:100:300"
max_tokens = "normal:50:10"

[[workloads]]
name = "long"
prompt_tokens = "4k"
cache = "as-is"

[[workloads]]
name = "files"
dataset = "p.jsonl"

[[stages]]
concurrency = [1, 8]
workload = ["short", "long"]
requests = 200
think_time = "exp:2s"

[[stages]]
name = "both"
rate = "2..20/5"
mix = { short = 9, long = 1 }
endpoint = "b"
arrival = { gamma = 0.5 }
requests = "10k"
duration = "1m"

[[stages]]
concurrency = 2
workload = "files"
requests = 5
"#;

#[test]
fn everything_is_read() {
    let plan = good(FULL);
    assert_eq!(
        names(&plan),
        ["c1 short", "c8 short", "c1 long", "c8 long", "both", "c2 files"],
        "the endpoint is named where it is written"
    );
    assert_eq!((plan.warmup, plan.settle.to_string()), (1000, "2s".to_owned()));
    assert_eq!((plan.precision, plan.slo.as_slice()), (Some(0.05), &["ttft_p95<2s".to_owned()][..]));
    let [a, b] = &plan.endpoints[..] else { panic!("{:?}", plan.endpoints) };
    assert_eq!((a.dialect.as_str(), a.headers[0].value.as_str()), ("anthropic-messages", "load"));
    assert_eq!((b.dialect.as_str(), a.resolve[0].port), ("tgi-generate", 80));
    assert_eq!(plan.timeouts.first_token.to_string(), "5s");
    assert_eq!(plan.timeouts.total, ttft_model::Timeouts::default().total);
    assert_eq!(plan.budget.max_total_tokens, Some(1_000_000));
    let [short, long, files] = &plan.workloads[..] else { panic!("{:?}", plan.workloads) };
    assert_eq!(short.prompt, Prompt::Lengths("uniform:100:300".parse().unwrap()));
    assert_eq!((short.max_tokens, short.output.clone()), (90, Some("normal:50:10".parse().unwrap())));
    assert_eq!((&long.prompt, long.calibration), (&Prompt::Tokens(4000), Calibration::Measure));
    assert_eq!(files.prompt, Prompt::File("p.jsonl".to_owned()));
    assert_eq!((files.output.clone(), files.max_tokens), (Some(Lengths::Recorded), 64));
    let Load::Closed { think_time, .. } = plan.stages[0].load else { panic!() };
    assert_eq!(think_time, Some(Think::Exponential("2s".parse().unwrap())));
    let both = &plan.stages[4];
    let Load::Open { rate, rate_to, rate_steps, arrival, .. } = both.load else { panic!() };
    assert_eq!((rate, rate_to, rate_steps, arrival), (2.0, Some(20.0), Some(5), Arrival::Gamma(0.5)));
    assert_eq!(both.mix.iter().map(|share| share.weight).collect::<Vec<_>>(), [1.0, 9.0]);
    assert_eq!(again(&plan), plan);
}

#[test]
fn repetitions_are_passes_and_their_order_is_of_the_seed() {
    let text = "repeat = 3\n[[stages]]\nconcurrency = [1, 2, 4, 8]\nrequests = 5\n";
    let planned = good(text);
    assert_eq!(names(&planned)[..5], ["c1 #1", "c2 #1", "c4 #1", "c8 #1", "c1 #2"]);
    assert_eq!(
        planned.stages.iter().map(|s| s.repetition).collect::<Vec<_>>(),
        [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]
    );
    let shuffled = |seed: u64| good(&format!("order = \"shuffled\"\nseed = {seed}\n{text}"));
    let one = shuffled(1);
    assert_eq!(one, shuffled(1));
    assert_ne!(names(&one), names(&shuffled(2)));
    assert_ne!(names(&one), names(&planned));
    for (pass, number) in one.stages.chunks(4).zip(1..) {
        let mut all: Vec<&str> = pass.iter().map(|stage| stage.name.as_str()).collect();
        all.sort_unstable();
        assert_eq!(all, ["c1", "c2", "c4", "c8"].map(|name| format!("{name} #{number}")));
    }
    // As it was run, so it is run again.
    assert_eq!(again(&one), one);
    let repeated =
        |text: &str| with_flags(text, |flags| flags.put(Part::Run, "repeat", "--repeat", Some(2)).unwrap());
    let written = toml::to_string(&planned).unwrap();
    let twice = repeated(&written).unwrap();
    assert_eq!(names(&twice), ["c1 #1", "c2 #1", "c4 #1", "c8 #1", "c1 #2", "c2 #2", "c4 #2", "c8 #2"]);
    let both = read(&format!("repeat = 2\n{written}")).unwrap_err().to_string();
    assert!(both.contains("repetitions already"), "{both}");
}

#[test]
fn names_tell_what_differs() {
    let stage = |keys: &str| names(&good(&format!("[[stages]]\nrequests = 1\n{keys}"))).join(", ");
    assert_eq!(stage("concurrency = 8\nmodel = [\"a\", \"b\"]"), "c8 a, c8 b");
    assert_eq!(stage("concurrency = 8\nmodel = \"a\""), "c8");
    assert_eq!(stage("rate = [0.5, \"2..20\"]\nduration = 9"), "r0.5, r2..20");
    assert_eq!(stage("trace = \"t\"\nspeed = [1, 2.5]"), "trace×1, trace×2.5");
    assert_eq!(stage("name = \"mine\"\nconcurrency = [1, 2]"), "mine c1, mine c2");
    assert_eq!(stage("name = \"mine\"\nconcurrency = 2"), "mine");
    assert_eq!(stage("concurrency = [8, 8]"), "c8, c8 (2)");
    let two = "[[workloads]]\nname = \"x\"\n[[workloads]]\nname = \"y\"\n[[stages]]\nconcurrency = 1";
    assert_eq!(names(&good(two)), ["c1 x", "c1 y"], "all workloads, where none is named");
}

#[test]
fn a_trace_brings_its_own_prompts() {
    let plan = good("[[stages]]\ntrace = \"t.jsonl\"\nspeed = [1, 2]\n");
    let of_trace = Prompt::Trace { path: "t.jsonl".to_owned(), format: None };
    assert_eq!((plan.workloads.len(), &plan.workloads[0].prompt), (1, &of_trace));
    assert_eq!(plan.workloads[0].output, Some(Lengths::Recorded));
    assert_eq!(plan.stages[0].stop, Stop::default());
    assert_eq!(again(&plan), plan);
    let beside =
        good("[[workloads]]\nprompt_tokens = 9\n[[stages]]\ntrace = \"t\"\n[[stages]]\nconcurrency = 1");
    assert_eq!(names(&beside), ["trace×1 trace", "c1 default"]);
    let other = read("[[workloads]]\nprompt = \"x\"\n[[stages]]\ntrace = \"t\"\nworkload = \"default\"");
    assert!(other.unwrap_err().to_string().contains("leave `workload` out"));
}

#[test]
fn flags_replace_what_they_say_again() {
    let put = |part, key: &'static str, value: toml::Value| {
        move |flags: &mut Overlay| flags.put(part, key, &format!("--{key}"), Some(value)).unwrap()
    };
    let numbers = |list: &[i64]| toml::Value::try_from(list).unwrap();
    let text = |text: &str| toml::Value::from(text);
    let sweep = "[[stages]]\nconcurrency = [1, 8]\nrequests = 5\nduration = \"9s\"\nramp_up = \"1s\"\n";

    let other_load = with_flags(sweep, put(Part::Stage, "rate", toml::Value::from(2.5))).unwrap();
    assert_eq!(names(&other_load), ["r2.5"]);
    assert_eq!(other_load.stages[0].load, Load::open(2.5, Arrival::Poisson));
    assert_eq!(other_load.stages[0].stop.requests, Some(5), "what says nothing of the load stays");
    let written = toml::to_string(&good(sweep)).unwrap();
    let levels = with_flags(&written, put(Part::Stage, "concurrency", numbers(&[2, 3]))).unwrap();
    assert_eq!(names(&levels), ["c2", "c3"], "once, however many there were");

    let stop = with_flags(sweep, put(Part::Stage, "duration", text("3s"))).unwrap();
    assert!(
        stop.stages
            .iter()
            .all(|s| s.stop.requests.is_none() && s.stop.duration.is_some_and(|d| d.to_string() == "3s"))
    );
    let mixed = "[[stages]]\nconcurrency = 1\nrequests = 1\n[[stages]]\nrate = 1\nrequests = 1\n";
    let think = with_flags(mixed, put(Part::Stage, "think_time", text("1s"))).unwrap();
    assert!(matches!(think.stages[0].load, Load::Closed { think_time: Some(_), .. }), "only where it fits");
    let none = with_flags(sweep, put(Part::Stage, "arrival", text("constant"))).unwrap_err().to_string();
    assert_eq!(none, "--arrival: goes with --rate, and the plan has no such stage");

    let prompts = with_flags(FULL, put(Part::Workload, "prompt", text("hello"))).unwrap();
    assert!(prompts.workloads.iter().all(|workload| workload.prompt == Prompt::Text("hello".to_owned())));
    let answers = with_flags(FULL, put(Part::Workload, "max_tokens", toml::Value::from(8))).unwrap();
    assert!(
        answers.workloads.iter().all(|workload| (workload.max_tokens, workload.output.clone()) == (8, None))
    );
    let url = put(Part::Endpoint, "url", text("http://c"));
    let several = with_flags(FULL, url.clone()).unwrap_err().to_string();
    assert!(several.contains("--set endpoints.NAME.url="), "{several}");
    assert_eq!(with_flags(sweep, url).unwrap().endpoint().url, "http://c");
    let time = with_flags(FULL, put(Part::Run, "timeouts.idle", text("1s"))).unwrap();
    assert_eq!(
        (time.timeouts.idle.to_string(), time.timeouts.first_token.to_string()),
        ("1s".into(), "5s".into())
    );
}

#[test]
fn models_are_an_axis() {
    let models = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        move |flags: &mut Overlay| flags.models(&names)
    };
    let two = with_flags("", models(&["a", "b"])).unwrap();
    assert_eq!(names(&two)[..5], ["c1 a", "c8 a", "c16 a", "c32 a", "c1 b"]);
    assert_eq!(two.endpoint().model.as_deref(), Some("a"));
    let one = with_flags(&toml::to_string(&two).unwrap(), models(&["c"])).unwrap();
    assert_eq!(names(&one), ["c1", "c8", "c16", "c32"]);
    assert_eq!(one.model_of(&one.stages[0]), Some("c"));
}

#[test]
fn workloads_may_be_said_by_flags() {
    let flags = |mix: Option<&'static str>| {
        move |flags: &mut Overlay| {
            flags.workload("short:prompt-tokens=200,max-tokens=50").unwrap();
            flags.workload("talk:prompt=one, two and three,cache=warm").unwrap();
            let mix = mix.map(|mix| toml::from_str::<toml::Table>(mix).unwrap());
            flags.put(Part::Stage, "mix", "--mix", mix).unwrap();
        }
    };
    let beside = with_flags("", flags(None)).unwrap();
    assert_eq!(names(&beside)[3..5], ["c32 short", "c1 talk"]);
    assert_eq!(beside.workloads[1].prompt, Prompt::Text("one, two and three".to_owned()));
    let mixed = with_flags("", flags(Some("short = 9\ntalk = 1"))).unwrap();
    assert_eq!(names(&mixed), ["c1", "c8", "c16", "c32"]);
    assert_eq!(mixed.stages[0].mix.len(), 2);
    let unused = with_flags("", flags(Some("short = 1"))).unwrap_err().to_string();
    assert!(unused.contains("--workload talk: no stage asks for it"), "{unused}");
    let slip = with_flags("", |flags| flags.workload("a:prompt-tokns=2").unwrap()).unwrap_err().to_string();
    assert_eq!(
        slip,
        "--workload a: unknown key `prompt_tokns` in workloads.0; did you mean `prompt_tokens`?"
    );
    let changed = with_flags(FULL, |flags| flags.workload("short:prompt-tokens=9").unwrap()).unwrap();
    assert_eq!((&changed.workloads[0].prompt, changed.workloads[0].max_tokens), (&Prompt::Tokens(9), 90));
}

#[test]
fn one_value_is_set_by_its_path() {
    let set = |text: &str, paths: &[&str]| {
        let mut draft = Draft::read(text, "ttft.toml")?;
        paths.iter().try_for_each(|path| draft.set(path))?;
        plan_of(draft)
    };
    let plan = set(
        FULL,
        &[
            "stages.0.concurrency=[3, 4]",
            "stages.both.rate=2..4",
            "stages.*.requests=9",
            "workloads.long.prompt_tokens=2k",
            "endpoints.b.url=http://c",
            "endpoints.0.headers.x-team=other",
            "timeouts.first_token=7s",
            "client.workers=2",
            "name=7",
            "slo=ttft_p50<1s",
        ],
    )
    .unwrap();
    assert_eq!(names(&plan)[..3], ["c3 short", "c4 short", "c3 long"]);
    assert!(plan.stages.iter().all(|stage| stage.stop.requests == Some(9)));
    assert_eq!(
        (plan.endpoints[1].url.as_str(), plan.endpoints[0].headers[0].value.as_str()),
        ("http://c", "other")
    );
    assert_eq!(plan.name, "7");
    assert_eq!((plan.client.workers, plan.slo[0].as_str()), (Some(2), "ttft_p50<1s"));
    assert_eq!(set("", &["stages.0.concurrency=8", "endpoint.model=m"]).unwrap().stages.len(), 1);
    let written = toml::to_string(&good("[[stages]]\nconcurrency = [1, 8]")).unwrap();
    assert_eq!(names(&set(&written, &["stages.c8.concurrency=9"]).unwrap()), ["c1", "c9"]);

    for (path, says) in [
        ("stages.0", "an entry of `stages` is a table: say which key"),
        ("stages.3.requests=1", "`stages` has 3 entries, numbers 0 to 2"),
        ("stages.bath.requests=1", "`stages` has no `bath`; did you mean `both`?"),
        ("workloads.other.cache=warm", "there are short, long, files"),
        ("stages.0.concurency=1", "unknown key `concurency` in stages.0; did you mean `concurrency`?"),
        ("stagse.0.concurrency=1", "unknown key `stagse`; did you mean `stages`?"),
        ("endpoint.url=x", "name one, endpoints.NAME"),
        ("name.first=x", "`name` is a text, and has no `first`"),
        ("seed=one", "--set seed: `seed`: `one` is not a count"),
        ("stages..x=1", "a step of the path is empty"),
        ("name", "write it as PATH=VALUE"),
    ] {
        let path = if path == "stages.0" { "stages.0=1" } else { path };
        let error = set(FULL, &[path]).unwrap_err().to_string();
        assert!(error.starts_with("--set ") && error.contains(says), "{error}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, says) in [
        ("seed = = 1", "ttft.toml, line 1: "),
        ("name = \"a\"\nsede = 2", "ttft.toml, line 2: unknown key `sede`; did you mean `seed`?"),
        ("\nrepaet = 2", "ttft.toml, line 2: unknown key `repaet`; did you mean `repeat`?"),
        ("zzzzzzzz = 2", "unknown key `zzzzzzzz`; known are name, seed,"),
        (
            "[timeouts]\nfirst_tokn = \"1s\"",
            "line 2: unknown key `first_tokn` in timeouts; did you mean `first_token`?",
        ),
        (
            "[[stages]]\nconcurrency = 1\n[[stages]]\nconcurency = [1]",
            "line 4: unknown key `concurency` in stages.1;",
        ),
        ("[[stages]]\nconcurrency = [1, \"many\"]", "line 2: `stages.0.concurrency`: `many` is not a count"),
        (
            "[[stages]]\nconcurrency = 1.5",
            "line 2: `stages.0.concurrency`: expected a whole number such as 200 or \"4k\", found 1.5",
        ),
        ("seed = -1", "`seed`: expected a whole number such as 200 or \"4k\", found -1"),
        ("seed = true", "`seed`: expected a whole number such as 200 or \"4k\", found true"),
        ("name = 3", "`name`: expected a text in quotes, found 3"),
        ("settle = \"soon\"", "`settle`: `soon` is not a length of time"),
        ("settle = true", "`settle`: expected a length of time such as \"500ms\" or \"2s\", found true"),
        ("timeouts = 3", "`timeouts`: expected a table, found 3"),
        ("stages = 3", "`stages`: expected tables, written [[stages]], found a number"),
        ("order = \"shufled\"", "`order`: expected one of planned, shuffled; did you mean `shuffled`?"),
        ("[[workloads]]\ncache = \"hot\"", "line 2: `workloads.0.cache`: expected one of cold, warm, as-is"),
        ("[[workloads]]\nprompt = { tokns = 3 }", "`workloads.0.prompt.tokns`: expected one of text, tokens"),
        (
            "[[workloads]]\nprompt = \"x\"\ndataset = \"y\"",
            "line 3: `workloads.0.dataset`: does not go with `prompt`",
        ),
        ("[[workloads]]\nprompt_tokens = \"recorded\"", "takes lengths"),
        ("[[stages]]\nrequests = 1", "`stages.0`: stage `r` needs one of `concurrency`, `rate` and `trace`"),
        ("[[stages]]\nrate = 1\nconcurrency = 1", "not concurrency and rate"),
        ("[[stages]]\nrate = 1\nthink_time = 1", "`think_time` does not go with `rate`"),
        ("[[stages]]\nrate = \"2..\"", "line 2: `stages.0.rate`: it is requests a second"),
        ("[[stages]]\nconcurrency = []", "line 2: `stages.0.concurrency`: lists nothing"),
        ("precision = \"few\"", "expected a share such as \"5%\" or 0.05"),
        ("[endpoint]\nresolve = [\"h:1\"]", "line 2: `endpoints.0.resolve.0`: write it as HOST:PORT:ADDR"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}\n{error}\n{says}");
    }
}

#[test]
fn a_key_in_the_wrong_place_is_not_shown() {
    for text in ["[endpoint]\napi_key = \"sk-secret\"", "[[endpoints]]\nheaders = [\"sk-secret\"]"] {
        let error = read(text).unwrap_err().to_string();
        assert!(!error.contains("sk-secret"), "{error}");
    }
    let error = Draft::new().set(&format!("{}b=1", "a.".repeat(100_000))).unwrap_err().to_string();
    assert!(error.contains("no plan is as deep"), "{}", error.len());
    let error = Draft::new().set("sk-secret").unwrap_err().to_string();
    assert!(error.contains("PATH=VALUE"), "{error}");
}

#[test]
fn plans_that_contradict_themselves_are_refused() {
    let stage = |keys: &str| format!("[[stages]]\nconcurrency = 1\n{keys}");
    for (text, says) in [
        (
            stage("workload = \"defualt\""),
            "stage c1: no workload is called `defualt`; did you mean `default`?",
        ),
        (stage("endpoint = \"x\""), "stage c1: no endpoint is called `x`; there are default"),
        (stage("mix = { default = 0 }"), "it is a number above 0"),
        (stage("requests = 0"), "stage c1: `requests` 0 would send nothing"),
        (stage("duration = 0"), "stage c1: `duration` 0 would send nothing"),
        (stage("ramp_up = 20"), "ends after 10s"),
        ("[[stages]]\nconcurrency = 0".to_owned(), "`concurrency` 0 would send nothing"),
        ("[[stages]]\nrate = 0".to_owned(), "`rate` is 0e0"),
        ("[[stages]]\nrate = \"1..2\"\nrequests = 9".to_owned(), "needs `duration`"),
        ("[[stages]]\nrate = 1\nrate_steps = 3".to_owned(), "needs `rate_to`"),
        ("[[stages]]\nrate = 1\nmax_in_flight = 0".to_owned(), "would send nothing"),
        ("[[stages]]\ntrace = \"t\"\nspeed = 0".to_owned(), "a factor from 1e-6"),
        ("precision = 0.05".to_owned(), "`precision` needs `requests`"),
        (format!("precision = 5\n{}", stage("requests = 9")), "between 0 and 1"),
        ("repeat = 0".to_owned(), "`repeat` is 0"),
        ("[budget]\nmax_cost = 5".to_owned(), "needs `price_in` and `price_out`"),
        ("[budget]\nmax_cost = 0\nprice_in = 1\nprice_out = 1".to_owned(), "allows nothing"),
        ("[budget]\nmax_total_tokens = 0".to_owned(), "allows nothing"),
        ("[budget]\nprice_in = -1".to_owned(), "`budget.price_in` is no price"),
        ("[[workloads]]\nmax_tokens = 0".to_owned(), "asks for no answer"),
        ("[[workloads]]\n[[workloads]]".to_owned(), "two workloads are called `default`"),
        ("[[endpoints]]\n[[endpoints]]".to_owned(), "two endpoints are called `default`"),
        ("[client]\nworkers = 0".to_owned(), "would send nothing"),
        ("[timeouts]\nidle = 0".to_owned(), "leaves no time"),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}\n{error}\n{says}");
    }
}

#[test]
fn numbers_that_would_bring_the_client_down_are_refused() {
    let stage = |keys: &str| format!("[[stages]]\nrequests = 3\n{keys}");
    let workload = |keys: &str| format!("[[workloads]]\n{keys}");
    for (text, says) in [
        (stage("rate = 1e-300"), "`rate` is 1e-300"),
        (stage("rate = nan"), "`rate` is NaN"),
        (stage("rate = 1\nrate_to = inf\nduration = 1"), "`rate_to` is inf"),
        (stage("rate = \"1..9/1000000\"\nduration = 1"), "`rate_steps` is 1000000"),
        (stage("rate = 1\narrival = { gamma = -1 }"), "the shape of `gamma` is -1"),
        (stage("rate = 1\narrival = { gamma = nan }"), "the shape of `gamma` is NaN"),
        (stage("trace = \"t\"\nspeed = 1e-300"), "`speed` is 1e-300"),
        (stage("rate = 1\nduration = \"100000h\""), "up to ten years"),
        ("repeat = 4000000000".to_owned(), "16000000000 stages are too many"),
        ("[client]\nworkers = 4000000000".to_owned(), "there can be 1024"),
        ("[budget]\nprice_out = 1e300".to_owned(), "`budget.price_out` is no price"),
        (workload("prompt_tokens = 4000000000"), "the longest is 10M"),
        (workload("max_tokens = \"uniform:1:11M\""), "the longest is 10M"),
        (workload("prefix = { tokens = 4000000000 }"), "`prefix.tokens` is more than 10000000"),
        (workload("images = 257"), "a request can have 256 images of 512x512"),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}\n{error}\n{says}");
    }
}

#[test]
fn the_template_is_the_usual_sweep() {
    let plan = good(TEMPLATE);
    let mut usual = good("");
    // It says a length, so it is measured.
    usual.workloads[0].calibration = Calibration::Measure;
    assert_eq!(plan, usual);
}

/// What stands commented out is right as well: each line of keys alone, where it stands.
#[test]
fn every_commented_key_of_the_template_is_known() {
    let mut header = String::new();
    let mut seen = 0;
    for line in TEMPLATE.lines() {
        if line.starts_with('[') {
            header = line.to_owned();
        }
        let Some(key) = line.strip_prefix("# ").filter(|rest| is_assignment(rest)) else { continue };
        seen += 1;
        let beside = match header.as_str() {
            "[[stages]]" => match key.split(' ').next().unwrap_or_default() {
                "rate" | "trace" | "concurrency" => "requests = 1",
                "rate_to" => "rate = 1\nduration = 9",
                "rate_steps" => "rate = 1\nrate_to = 2\nduration = 9",
                "arrival" => "rate = 1",
                "max_in_flight" | "trace_format" | "speed" | "smooth" => "trace = \"t\"",
                _ => "concurrency = 1",
            },
            "[budget]" if key.starts_with("max_cost") => "price_in = 1\nprice_out = 1",
            _ => "",
        };
        let before =
            if key.starts_with("precision") { "[[stages]]\nconcurrency = 1\nrequests = 9\n" } else { "" };
        let mixed = "[[workloads]]\nname = \"short\"\n[[workloads]]\nname = \"long\"\n";
        let before = if key.starts_with("mix") { mixed } else { before };
        let text = if header.is_empty() {
            format!("{key}\n{before}")
        } else {
            format!("{before}{header}\n{beside}\n{key}\n")
        };
        read(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    }
    assert!(seen > 50, "{seen}");
}

fn is_assignment(text: &str) -> bool {
    let key = text.split_once(" = ").map(|(key, _)| key);
    key.is_some_and(|key| key.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

/// Asks every table of the structure for its keys, by one that no table has.
#[test]
fn every_key_is_in_the_template() {
    let mut keys = 0;
    for (before, table) in [
        ("", ""),
        ("[endpoint]\n", "endpoints.0"),
        ("[[workloads]]\n", "workloads.0"),
        ("[[stages]]\nconcurrency = 1\n", "stages.0"),
        ("[timeouts]\n", "timeouts"),
        ("[budget]\n", "budget"),
        ("[sources]\n", "sources"),
        ("[client]\n", "client"),
        ("[[workloads]]\n[workloads.prefix]\ntokens = 1\n", "workloads.0.prefix"),
        ("[[workloads]]\n[workloads.session]\nturns = 1\n", "workloads.0.session"),
        ("[[workloads]]\n[workloads.images]\ncount = 1\n", "workloads.0.images"),
    ] {
        let Err(FileError::Unknown { table: told, known, .. }) = read(&format!("{before}zzzzzzzzzz = 1\n"))
        else {
            panic!("{before} takes anything")
        };
        assert_eq!(told, table);
        for key in known {
            keys += 1;
            let is_there = ["\n", "# ", "[", "[[", "{ ", ", ", "with ", "`"].iter().any(|before| {
                [" = ", "]", "` "].iter().any(|after| TEMPLATE.contains(&format!("{before}{key}{after}")))
            });
            assert!(is_there, "`{key}` of `{table}` is not in the template");
        }
    }
    assert!(keys > 60, "{keys}");
}
