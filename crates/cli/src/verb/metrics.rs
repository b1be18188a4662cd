//! `ttft metrics`: what a metrics page says, whatever engine it is of.

pub(crate) mod source;
mod text;
mod watch;

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use serde_json::{Value, json};
use ttft_model::ApiKey;
use ttft_sources::{Catalogue, Engine, Reading};

use self::source::{Fetcher, Kind, Source, Unreadable};
use crate::exit::{self, Exit};
use crate::{output, usage};

/// Read metrics pages: which engine, what it says of TTFT, queue, caches and GPUs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft metrics http://localhost:8000               /metrics is added to a base URL
  ttft metrics http://localhost:8000 http://gpu-node:9400
  ttft metrics before.prom after.prom              two scrapes: what happened between them
  ttft metrics http://localhost:8000 --from before.prom
  ttft metrics http://localhost:8000 --watch       each second, with what is new
  ttft metrics nvidia-smi                          the GPUs of this machine
  ttft metrics page.prom --engine mine.toml --json

Quantiles of histograms are estimates within a bucket, whose bounds stand beside them: ~ in the first one, where \
nothing holds them; ? if everything is there; ≥ if only a lower bound is known.

Exit code 0 if a page was read, 3 if none was.")]
pub(crate) struct Args {
    /// URLs, files, `-` for standard input, or `nvidia-smi`
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<String>,
    /// An earlier scrape of the same server
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    from: Option<String>,
    /// Scrape each second and show a live table, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// End after that many scrapes
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    scrapes: Option<u64>,
    /// A file like those in engines/: adds an engine, or replaces the one of the same name; may be repeated
    #[arg(long, value_name = "FILE")]
    engine: Vec<PathBuf>,
    /// Extra request header, `Name: value`; may be repeated
    #[arg(long, short = 'H', value_name = "HEADER")]
    header: Vec<String>,
    /// Environment variable with the key that the page asks for
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
    /// File with the key
    #[arg(long, value_name = "FILE", conflicts_with = "api_key_env")]
    api_key_file: Option<String>,
    /// Accept any certificate
    #[arg(long)]
    insecure: bool,
    /// PEM file with more roots to trust
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// How long a page may take
    #[arg(long, value_name = "TIME", default_value = "10s")]
    timeout: ttft_model::Span,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn catalogue(&self) -> anyhow::Result<Catalogue> {
        let mut catalogue = Catalogue::builtin()?;
        for file in &self.engine {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {name}"))
                .map_err(usage)?;
            catalogue = catalogue.with(Engine::parse(&name, &text).map_err(usage)?);
        }
        Ok(catalogue)
    }

    /// A key is sent only where one is asked for: metrics are mostly open, and whoever serves them may be another.
    fn key(&self) -> ApiKey {
        match (&self.api_key_file, &self.api_key_env) {
            (Some(file), _) => ApiKey::File(file.clone()),
            (None, Some(name)) => ApiKey::Env(name.clone()),
            (None, None) => ApiKey::None,
        }
    }
}

/// What came of one source.
struct Outcome {
    /// The source as it may be shown.
    name: String,
    read: anyhow::Result<Reading>,
}

/// Reads pages, once or each second.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let catalogue = args.catalogue()?;
    let fetcher = Fetcher::new(args)?;
    let sources = args.sources.iter().map(|text| Source::parse(text)).collect::<anyhow::Result<Vec<_>>>()?;
    if args.watch {
        return watch::run(&catalogue, &fetcher, &sources, args);
    }
    let outcomes = match (&args.from, sources.as_slice()) {
        (Some(from), [after]) => vec![window(&catalogue, &fetcher, &Source::file(from), after)],
        (Some(_), _) => return Err(usage(anyhow!("--from goes with one source"))),
        (None, [first, second]) if first.kind == Kind::File && second.kind == Kind::File => {
            two_files(&catalogue, &fetcher, first, second)
        }
        (None, sources) => sources.iter().map(|source| once(&catalogue, &fetcher, source)).collect(),
    };
    show(&outcomes, args.json)
}

/// One page by itself.
fn once(catalogue: &Catalogue, fetcher: &Fetcher, source: &Source) -> Outcome {
    let read = fetcher.page(source).map(|scrape| catalogue.read(&scrape.page));
    Outcome { name: source.name.clone(), read }
}

/// Two scrapes of one server as a window.
fn window(catalogue: &Catalogue, fetcher: &Fetcher, before: &Source, after: &Source) -> Outcome {
    let name = format!("{} → {}", before.name, after.name);
    let page = |source: &Source| match fetcher.page(source) {
        Ok(scrape) => Ok(scrape.page),
        Err(error) => Err(error.context(source.name.clone())),
    };
    let both = page(before).and_then(|before| Ok((before, page(after)?)));
    Outcome { name, read: both.map(|(before, after)| catalogue.read_window(&before, &after, None)) }
}

/// Two files are two scrapes of one server, unless they are of different engines.
fn two_files(catalogue: &Catalogue, fetcher: &Fetcher, first: &Source, second: &Source) -> Vec<Outcome> {
    let apart = [once(catalogue, fetcher, first), once(catalogue, fetcher, second)];
    let engine = |outcome: &Outcome| outcome.read.as_ref().ok().and_then(|reading| reading.engine.clone());
    if apart.iter().all(|outcome| outcome.read.is_ok()) && engine(&apart[0]) == engine(&apart[1]) {
        vec![window(catalogue, fetcher, first, second)]
    } else {
        apart.into()
    }
}

fn show(outcomes: &[Outcome], json: bool) -> anyhow::Result<Exit> {
    let forms: Vec<Value> = outcomes.iter().map(form).collect();
    let form = match forms.as_slice() {
        [one] => one.clone(),
        several => json!({ "sources": several }),
    };
    output::show(json, &form, |style| {
        let readings =
            outcomes.iter().filter_map(|outcome| Some((&outcome.name, outcome.read.as_ref().ok()?)));
        readings.map(|(name, reading)| text::reading(name, reading, *style)).collect::<Vec<_>>().join("\n")
    })?;
    let mut exit = Exit::NotMeasured;
    for outcome in outcomes {
        match &outcome.read {
            Ok(_) => exit = Exit::Ok,
            Err(error) => {
                if let Some(Exit::Usage) = error.downcast_ref::<Exit>() {
                    return Err(usage(anyhow!("{}: {}", outcome.name, exit::words(error))));
                }
                output::note(&format!(
                    "error: {}: {}",
                    ttft_show::escape(&outcome.name),
                    ttft_show::escape(&exit::words(error))
                ));
            }
        }
    }
    Ok(exit)
}

/// The JSON form: a page that cannot be read is told in the same names.
fn form(outcome: &Outcome) -> Value {
    let mut form = match &outcome.read {
        Ok(reading) => serde_json::to_value(reading).unwrap_or_default(),
        Err(error) => {
            let format = error.downcast_ref::<Unreadable>().map(|unreadable| unreadable.0.format());
            let mut form =
                json!({ "engine": null, "format": format, "is_prometheus": format.map(|_| false) });
            for (name, _) in ttft_sources::names() {
                form[name] = Value::Null;
            }
            form["error"] = exit::words(error).into();
            form
        }
    };
    form["source"] = outcome.name.clone().into();
    form
}
