//! What is scraped beside the load: named by flags, or found at the endpoint's host.

use std::path::PathBuf;

use anyhow::anyhow;
use http::{HeaderMap, HeaderName, HeaderValue};
use ttft_model::{Endpoint, HttpVersion, Plan, Sources};
use ttft_plan::file::{Overlay, Part};
use ttft_sources::{Catalogue, Reading};
use ttft_store::ScrapeFile;
use ttft_store::redact::Secrets;
use ttft_wire::{ConnectOptions, TlsOptions, tls_config};
use url::Url;

use super::scrape::{LIMIT, TIMEOUT, Watched};
use crate::endpoint::{Putter, Reached, given};
use crate::verb::metrics::source::{Credentials, Fetcher, Kind, Source, plain_headers};
use crate::{exit, output, usage};

/// What is scraped beside the load.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The server's side")]
#[expect(clippy::struct_field_names, reason = "the names are the flags")]
pub(crate) struct SourceArgs {
    /// Scrape this metrics page of an engine or a gateway beside the load, each second and at the edges of each stage;
    /// may be repeated [default: the page at the endpoint's own host, if there is one]
    #[arg(long, value_name = "URL")]
    pub server_metrics: Vec<String>,
    /// Scrape this page of accelerators too (DCGM exporter and others), or `nvidia-smi` for those of this machine; may
    /// be repeated
    #[arg(long, value_name = "URL")]
    pub gpu_metrics: Vec<String>,
    /// Scrape no page of the server, and look for none
    #[arg(long, conflicts_with = "server_metrics")]
    pub no_server_metrics: bool,
}

impl SourceArgs {
    /// Puts what was said into the words of a plan.
    pub(crate) fn lay(&self, flags: &mut Overlay) -> anyhow::Result<()> {
        let mut put = Putter { flags, part: Part::Run };
        put.say("sources.server", "--server-metrics", given(&self.server_metrics))?;
        put.say("sources.gpu", "--gpu-metrics", given(&self.gpu_metrics))?;
        if self.no_server_metrics {
            put.say("sources.server", "--no-server-metrics", Some(Vec::<String>::new()))?;
            put.say("sources.find", "--no-server-metrics", Some(false))?;
        }
        Ok(())
    }
}

/// Refuses sources that are none.
pub(crate) fn check(planned: &Sources) -> anyhow::Result<()> {
    named(planned).map(drop)
}

/// The sources that a plan names.
fn named(planned: &Sources) -> anyhow::Result<Vec<(ScrapeFile, Source)>> {
    let of = |file: ScrapeFile, texts: &[String]| {
        let parse = |text: &String| match Source::parse(text)? {
            source if source.kind == Kind::Url => Ok((file, source)),
            source if source.kind == Kind::NvidiaSmi && file == ScrapeFile::Gpu => Ok((file, source)),
            source => Err(usage(anyhow!(
                "`{}` is no URL of a metrics page: write it as http://HOST:PORT",
                ttft_store::redact::url(&source.name)
            ))),
        };
        texts.iter().map(parse).collect::<anyhow::Result<Vec<_>>>()
    };
    Ok([of(ScrapeFile::Server, &planned.server)?, of(ScrapeFile::Gpu, &planned.gpu)?].concat())
}

/// All that is to be scraped, each looked at once: what it is of is told, and so is what cannot be read. None of it is
/// a reason not to run.
pub(super) fn watched(plan: &Plan, reached: &[Reached], secrets: &Secrets) -> anyhow::Result<Vec<Watched>> {
    let fetchers = plan.endpoints.iter().zip(reached).map(|(endpoint, reached)| fetcher(endpoint, reached));
    let fetchers = fetchers.collect::<anyhow::Result<Vec<_>>>()?;
    let catalogue = Catalogue::builtin()?;
    let mut watched = Vec::new();
    for (file, source) in named(&plan.sources)? {
        // As the endpoint on the same server is reached, or else the first one.
        let own = fetchers.iter().find(|fetcher| fetcher.is_for(&source)).or(fetchers.first());
        let Some(fetcher) = own.cloned() else { continue };
        // Nobody waits for the load yet: a server that has just started may take its time.
        let mut patient = fetcher.clone();
        patient.connect.timeout = 3 * TIMEOUT.to_std();
        let look = look(&patient, &catalogue, &source);
        match &look {
            Ok(reading) => tell(file, &source, reading),
            Err(error) => output::note(&format!(
                "no metrics from {} for now: {}",
                ttft_show::escape(&source.name),
                ttft_show::escape(&secrets.scrub(&exit::words(error)))
            )),
        }
        watched.push(Watched { file, source, fetcher, answers: look.is_ok() });
    }
    if plan.sources.find && plan.sources.server.is_empty() {
        for (fetcher, reached) in fetchers.into_iter().zip(reached) {
            let Some((source, reading)) = find(&fetcher, &catalogue, reached) else { continue };
            // Several endpoints may be of one server.
            if !watched.iter().any(|known: &Watched| known.source.name == source.name) {
                tell(ScrapeFile::Server, &source, &reading);
                watched.push(Watched { file: ScrapeFile::Server, source, fetcher, answers: true });
            }
        }
    }
    Ok(watched)
}

fn tell(file: ScrapeFile, source: &Source, reading: &Reading) {
    let of = if file == ScrapeFile::Gpu { "accelerator" } else { "server" };
    let version = reading.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    output::note(&format!(
        "{of} metrics from {} ({}{}), each second",
        ttft_show::escape(&source.name),
        ttft_show::escape(&reading.title),
        ttft_show::escape(&version),
    ));
}

fn look(fetcher: &Fetcher, catalogue: &Catalogue, source: &Source) -> anyhow::Result<Reading> {
    Ok(catalogue.read(&fetcher.page(source)?.page))
}

/// A page at the endpoint's own host, if one of those that engines and gateways have is of one that is known. A host
/// that does not answer is asked no further.
fn find(fetcher: &Fetcher, catalogue: &Catalogue, reached: &Reached) -> Option<(Source, Reading)> {
    for url in candidates(&reached.url) {
        let source = Source::url(url);
        match look(fetcher, catalogue, &source) {
            Ok(reading) if reading.engine.is_some() => return Some((source, reading)),
            Err(error) if is_silence(&error) => return None,
            _ => {}
        }
    }
    None
}

/// Whether nothing answered at all.
fn is_silence(error: &anyhow::Error) -> bool {
    use ttft_model::ErrorClass as Class;
    let class = error.downcast_ref::<ttft_wire::WireError>().map(|wire| wire.class);
    !matches!(class, None | Some(Class::HttpAuth | Class::HttpNotFound | Class::HttpError))
}

/// Where metrics are, on the server of that URL: at its root, where TensorRT-LLM and Envoy have them, and beside the
/// path of a gateway that serves several.
fn candidates(endpoint: &str) -> Vec<String> {
    let Ok(mut url) = Url::parse(endpoint) else { return Vec::new() };
    let prefix = url.path().split_once("/v1").map_or("", |(before, _)| before);
    let beside = format!("{prefix}/metrics");
    url.set_query(None);
    url.set_fragment(None);
    let mut found: Vec<String> = Vec::new();
    for path in ["/metrics", &beside, "/prometheus/metrics", "/stats/prometheus"] {
        url.set_path(path);
        if !found.contains(&url.to_string()) {
            found.push(url.to_string());
        }
    }
    found
}

/// Gets pages as requests reach the endpoint: through the same names, trusting the same roots. The key goes only to a
/// page of the endpoint's own server, and only when that asks for one.
fn fetcher(endpoint: &Endpoint, reached: &Reached) -> anyhow::Result<Fetcher> {
    let ca = endpoint.ca.as_ref().map(PathBuf::from);
    let tls = TlsOptions { insecure: endpoint.insecure, ca, http: HttpVersion::H1 };
    let connect = ConnectOptions {
        tls: tls_config(&tls).map_err(usage)?,
        http: HttpVersion::H1,
        timeout: TIMEOUT.to_std(),
        streams_per_connection: 1,
    };
    let mut headers = HeaderMap::new();
    let own = endpoint.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
    for (name, value) in reached.dialect.headers(reached.key.as_deref()).into_iter().chain(own) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers.remove(http::header::CONTENT_TYPE);
    let on_demand = Url::parse(&reached.url).ok().map(|url| Credentials { origin: url.origin(), headers });
    let resolve = endpoint.resolve.clone();
    Ok(Fetcher { connect, resolve, headers: plain_headers(), limit: LIMIT, on_demand })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_pages_may_be() {
        let of = |url: &str| candidates(url).join(" ");
        let root = "http://h:8000/metrics http://h:8000/prometheus/metrics http://h:8000/stats/prometheus";
        assert_eq!(of("http://h:8000/v1/chat/completions"), root);
        assert_eq!(of("http://h:8000/api/chat?key=secret#x"), root);
        let beside = "https://gw/metrics https://gw/team/a/metrics https://gw/prometheus/metrics https://gw/stats/prometheus";
        assert_eq!(of("https://gw/team/a/v1/chat/completions"), beside);
        assert_eq!(of("no url"), "");
    }
}
