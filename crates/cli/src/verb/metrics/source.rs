//! Where pages come from: URLs, files, standard input, and the program nvidia-smi.

use std::io::Read;
use std::process::Command;

use anyhow::{Context, anyhow, bail};
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use ttft_drive::{Got, get_whole};
use ttft_kernel::mono_now;
use ttft_model::{ErrorClass, HttpVersion, Nanos};
use ttft_sources::{MAX_PAGE, Page};
use ttft_store::redact;
use ttft_wire::{ConnectOptions, Target, TlsOptions, WireError, tls_config};
use url::Url;

use super::Args;
use crate::endpoint::read_key;
use crate::usage;

/// Redirects that are followed: LiteLLM sends `/metrics` to `/metrics/`.
const REDIRECTS: usize = 3;

/// What nvidia-smi is asked.
const QUERY: &str =
    "--query-gpu=index,name,uuid,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu";

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Url,
    File,
    Stdin,
    NvidiaSmi,
}

/// One source.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) kind: Kind,
    /// As it may be shown: without secrets.
    pub(super) name: String,
    /// The file, or the whole URL.
    at: String,
}

/// A page that cannot be read, as an error with what it is instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unreadable(pub(super) ttft_sources::Error);

/// A page and when it was complete.
pub(super) struct Scrape {
    pub(super) page: Page,
    pub(super) at: Nanos,
}

impl Source {
    /// A source as users write it.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let plain = |kind| Self { kind, name: text.to_owned(), at: text.to_owned() };
        match text {
            "-" => Ok(plain(Kind::Stdin)),
            "nvidia-smi" => Ok(plain(Kind::NvidiaSmi)),
            _ if text.contains("://") => {
                let at = page_url(text).map_err(usage)?;
                Ok(Self { kind: Kind::Url, name: redact::url(&at).into_owned(), at })
            }
            _ => Ok(Self::file(text)),
        }
    }

    /// A file.
    pub(super) fn file(path: &str) -> Self {
        Self { kind: Kind::File, name: path.to_owned(), at: path.to_owned() }
    }
}

/// The URL of the page: `/metrics` is added to a base, and takes the place of `/v1`.
fn page_url(text: &str) -> anyhow::Result<String> {
    let mut url = Url::parse(text).map_err(|e| anyhow!("{} is no URL: {e}", redact::url(text)))?;
    let mut path: Vec<&str> = url.path().split('/').filter(|part| !part.is_empty()).collect();
    let names_a_page = path.last().is_some_and(|last| {
        let last = last.to_ascii_lowercase();
        last.contains("metrics") || last.contains("prometheus") || last.contains('.')
    });
    if !names_a_page && url.query().is_none() {
        if path.last() == Some(&"v1") {
            path.pop();
        }
        path.push("metrics");
        let path = format!("/{}", path.join("/"));
        url.set_path(&path);
    }
    Ok(url.into())
}

/// Gets pages.
pub(super) struct Fetcher {
    connect: ConnectOptions,
    headers: HeaderMap,
}

impl Fetcher {
    pub(super) fn new(args: &Args) -> anyhow::Result<Self> {
        let tls = TlsOptions { insecure: args.insecure, ca: args.ca.clone(), http: HttpVersion::H1 };
        let connect = ConnectOptions {
            tls: tls_config(&tls).map_err(usage)?,
            http: HttpVersion::H1,
            timeout: args.timeout.0.to_std(),
            streams_per_connection: 1,
        };
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("text/plain;version=0.0.4, */*;q=0.1"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("ttft/", env!("CARGO_PKG_VERSION"))));
        if let Some(key) = read_key(&args.key())? {
            let mut value =
                HeaderValue::try_from(format!("Bearer {key}")).context("the key fits in no header")?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        for (number, text) in args.header.iter().enumerate() {
            let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
            let header = parts.and_then(|(name, value)| {
                Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
            });
            let Some((name, value)) = header else {
                return Err(usage(anyhow!("--header number {} is no `Name: value`", number + 1)));
            };
            headers.insert(name, value);
        }
        Ok(Self { connect, headers })
    }

    /// The page of a source.
    pub(super) fn page(&self, source: &Source) -> anyhow::Result<Scrape> {
        let (bytes, at) = match source.kind {
            Kind::Url => {
                let got = self.get(&source.at)?;
                (got.body, got.ended)
            }
            Kind::File => {
                let file = std::fs::File::open(&source.at)
                    .with_context(|| format!("cannot read {}", source.name))
                    .map_err(usage)?;
                (
                    read(file).with_context(|| format!("cannot read {}", source.name)).map_err(usage)?,
                    mono_now(),
                )
            }
            Kind::Stdin => (read(std::io::stdin().lock()).context("cannot read standard input")?, mono_now()),
            Kind::NvidiaSmi => (nvidia_smi()?, mono_now()),
        };
        Ok(Scrape { page: Page::parse(&bytes).map_err(Unreadable)?, at })
    }

    fn get(&self, url: &str) -> anyhow::Result<Got> {
        let mut url = url.to_owned();
        let mut headers = self.headers.clone();
        for _ in 0..=REDIRECTS {
            let target = Target::parse(&url).map_err(usage)?;
            let got = get_whole(&target, &self.connect, &[], headers.clone(), MAX_PAGE + 1)
                .map_err(|error| anyhow!("{error}; {}", error.class.remedy()))?;
            let path = redact::url(target.path.as_str()).into_owned();
            match (got.status, got.headers.get(LOCATION).and_then(|to| to.to_str().ok())) {
                (200, _) => return Ok(got),
                (301 | 302 | 303 | 307 | 308, Some(to)) => {
                    let from = Url::parse(&url)?;
                    let to = from.join(to).context("it redirects to what is no URL")?;
                    if to.origin() != from.origin() {
                        // A key is for whom it was meant.
                        headers.remove(AUTHORIZATION);
                    }
                    url = to.into();
                }
                (status @ (401 | 403), _) => {
                    let message = format!("it answers {status} to {path}: name the key with --api-key-env");
                    return Err(WireError { class: ErrorClass::HttpAuth, message }.into());
                }
                (404, _) => bail!(
                    "it answers 404 to {path}: some serve it elsewhere (TensorRT-LLM at /prometheus/metrics), or \
                     only when told to (llama.cpp: --metrics)"
                ),
                (status, _) => {
                    let body: String = String::from_utf8_lossy(&got.body).chars().take(200).collect();
                    bail!("it answers {status} to {path}: {}", body.trim());
                }
            }
        }
        bail!("it redirects more than {REDIRECTS} times")
    }
}

/// At most one byte more than may be: that it is too much is then seen.
fn read(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_PAGE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn nvidia_smi() -> anyhow::Result<Vec<u8>> {
    let done = Command::new("nvidia-smi")
        .args([QUERY, "--format=csv"])
        .output()
        .context("nvidia-smi cannot be started (is there an NVIDIA GPU in this machine?)")?;
    if !done.status.success() {
        bail!("nvidia-smi fails: {}", String::from_utf8_lossy(&done.stdout).trim());
    }
    Ok(done.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_pages() {
        for (given, wanted) in [
            ("http://h:8000", "http://h:8000/metrics"),
            ("http://h:8000/", "http://h:8000/metrics"),
            ("http://h:8000/v1", "http://h:8000/metrics"),
            ("https://gw/api", "https://gw/api/metrics"),
            ("http://h/metrics", "http://h/metrics"),
            ("http://h/metrics/", "http://h/metrics/"),
            ("http://h/prometheus/metrics", "http://h/prometheus/metrics"),
            ("http://h/stats/prometheus", "http://h/stats/prometheus"),
            ("http://h/page.prom", "http://h/page.prom"),
            ("http://h/stats?format=text", "http://h/stats?format=text"),
        ] {
            assert_eq!(page_url(given).unwrap(), wanted);
        }
        assert_eq!(Source::parse("http://u:secret@h").unwrap().name.matches("secret").count(), 0);
        assert!(Source::parse("http://").is_err());
    }
}
