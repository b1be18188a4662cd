//! Where pages come from: URLs, files, standard input, and the program nvidia-smi.

use std::cell::Cell;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HeaderName, HeaderValue, LOCATION, USER_AGENT};
use ttft_drive::{Got, get_whole};
use ttft_kernel::mono_now;
use ttft_model::{ErrorClass, HttpVersion, Nanos, Resolve};
use ttft_sources::{MAX_PAGE, Page, unpack};
use ttft_store::redact;
use ttft_wire::{ConnectOptions, Target, TlsOptions, WireError, tls_config};
use url::{Origin, Url};

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
pub(crate) enum Kind {
    Url,
    File,
    Stdin,
    NvidiaSmi,
}

/// One source.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) kind: Kind,
    /// As it may be shown: without secrets.
    pub(crate) name: String,
    /// The file, or the whole URL.
    at: String,
    /// It has asked for a key, and taken it.
    keyed: Cell<bool>,
}

/// A page that cannot be read, as an error with what it is instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreadable(pub(super) ttft_sources::Error);

/// What went wrong, in a word: the class of an error of the network or of HTTP, or what came instead of a page.
pub(crate) fn class(error: &anyhow::Error) -> &'static str {
    if let Some(wire) = error.downcast_ref::<WireError>() {
        return wire.class.name();
    }
    match error.downcast_ref::<Unreadable>() {
        Some(Unreadable(ttft_sources::Error::TooLarge { .. })) => "too_large",
        Some(Unreadable(error)) => error.format(),
        None => "failed",
    }
}

/// A page and when it was complete.
pub(crate) struct Scrape {
    pub(crate) page: Page,
    /// As it came, out of its packing.
    pub(crate) plain: Vec<u8>,
    pub(crate) at: Nanos,
}

impl Source {
    /// A source as users write it.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let plain = |kind| Self { kind, ..Self::file(text) };
        match text {
            "-" => Ok(plain(Kind::Stdin)),
            "nvidia-smi" => Ok(plain(Kind::NvidiaSmi)),
            _ if text.contains("://") => {
                let at = page_url(text).map_err(usage)?;
                Ok(Self::url(at))
            }
            _ => Ok(Self::file(text)),
        }
    }

    /// A file.
    pub(super) fn file(path: &str) -> Self {
        Self { kind: Kind::File, name: path.to_owned(), at: path.to_owned(), keyed: Cell::new(false) }
    }

    /// Exactly that URL.
    pub(crate) fn url(at: String) -> Self {
        Self { kind: Kind::Url, name: redact::url(&at).into_owned(), at, keyed: Cell::new(false) }
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
#[derive(Clone)]
pub(crate) struct Fetcher {
    pub(crate) connect: ConnectOptions,
    pub(crate) resolve: Vec<Resolve>,
    /// Sent with each request.
    pub(crate) headers: HeaderMap,
    /// Bytes of a page, unpacked, that are read at most.
    pub(crate) limit: usize,
    /// Sent to whoever asks for a key, and only there.
    pub(crate) on_demand: Option<Credentials>,
}

/// Headers that hold a key, and the server that it is for.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub(crate) origin: Origin,
    pub(crate) headers: HeaderMap,
}

/// What each request for a page says.
pub(crate) fn plain_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/plain;version=0.0.4, */*;q=0.1"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("ttft/", env!("CARGO_PKG_VERSION"))));
    headers
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
        let mut headers = plain_headers();
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
        Ok(Self { connect, resolve: Vec::new(), headers, limit: MAX_PAGE, on_demand: None })
    }

    /// Whether a source is on the server that the key is for.
    pub(crate) fn is_for(&self, source: &Source) -> bool {
        let origin = Url::parse(&source.at).ok().map(|url| url.origin());
        origin.is_some() && origin == self.on_demand.as_ref().map(|credentials| credentials.origin.clone())
    }

    /// The page of a source.
    pub(crate) fn page(&self, source: &Source) -> anyhow::Result<Scrape> {
        let (bytes, at) = match source.kind {
            Kind::Url => {
                let got = self.get(source)?;
                (got.body, got.ended)
            }
            Kind::File => {
                let file = std::fs::File::open(&source.at)
                    .with_context(|| format!("cannot read {}", source.name))
                    .map_err(usage)?;
                let bytes =
                    self.read(file).with_context(|| format!("cannot read {}", source.name)).map_err(usage)?;
                (bytes, mono_now())
            }
            Kind::Stdin => {
                (self.read(std::io::stdin().lock()).context("cannot read standard input")?, mono_now())
            }
            Kind::NvidiaSmi => (nvidia_smi(self.connect.timeout)?, mono_now()),
        };
        let plain = unpack(&bytes, self.limit).map_err(Unreadable)?.into_owned();
        Ok(Scrape { page: Page::parse(&plain).map_err(Unreadable)?, plain, at })
    }

    fn get(&self, source: &Source) -> anyhow::Result<Got> {
        let mut url = Url::parse(&source.at).map_err(usage)?;
        let mut headers = self.headers.clone();
        let mut keyed = false;
        let deadline = mono_now() + Nanos(self.connect.timeout.as_nanos() as i64);
        for _ in 0..=REDIRECTS {
            let credentials =
                self.on_demand.as_ref().filter(|credentials| credentials.origin == url.origin());
            if let Some(credentials) = credentials.filter(|_| source.keyed.get() && !keyed) {
                keyed = true;
                headers.extend(credentials.headers.clone());
            }
            let target = Target::parse(url.as_str()).map_err(usage)?;
            let connect =
                ConnectOptions { timeout: (deadline - mono_now()).to_std(), ..self.connect.clone() };
            // One byte more than may be: that it is too much is then seen.
            let got = get_whole(&target, &connect, &self.resolve, headers.clone(), self.limit + 1)
                .map_err(advised)?;
            let path = redact::url(target.path.as_str()).into_owned();
            match (got.status, got.headers.get(LOCATION).and_then(|to| to.to_str().ok())) {
                (200, _) => return Ok(got),
                (301 | 302 | 303 | 307 | 308, Some(to)) => {
                    let to = url.join(to).context("it redirects to what is no URL")?;
                    if to.origin() != url.origin() {
                        // A key is for whom it was meant.
                        headers = without_key(headers, self.on_demand.as_ref());
                    }
                    url = to;
                }
                (401 | 403, _) if credentials.is_some() && !keyed => source.keyed.set(true),
                (status, _) => {
                    source.keyed.set(false);
                    return Err(refusal(status, &path, &got.body).into());
                }
            }
        }
        bail!("it redirects more than {REDIRECTS} times")
    }

    /// At most one byte more than may be.
    fn read(&self, from: impl Read) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        from.take(self.limit as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The error with what to do about it.
fn advised(error: WireError) -> WireError {
    let remedy = match error.class {
        // That of a request would speak of tokens.
        ErrorClass::TimeoutTotal => return error,
        class => class.remedy(),
    };
    WireError { message: format!("{}; {remedy}", error.message), ..error }
}

fn without_key(mut headers: HeaderMap, credentials: Option<&Credentials>) -> HeaderMap {
    headers.remove(AUTHORIZATION);
    for name in credentials.into_iter().flat_map(|credentials| credentials.headers.keys()) {
        headers.remove(name);
    }
    headers
}

/// What a status other than 200 means.
fn refusal(status: u16, path: &str, body: &[u8]) -> WireError {
    let (class, why) = match status {
        401 | 403 => (ErrorClass::HttpAuth, "name the key with --api-key-env".to_owned()),
        404 => (
            ErrorClass::HttpNotFound,
            "some serve it elsewhere (TensorRT-LLM at /prometheus/metrics), or only when told to (llama.cpp: \
             --metrics)"
                .to_owned(),
        ),
        _ => {
            let class = match status {
                429 => ErrorClass::HttpRateLimited,
                503 | 529 => ErrorClass::HttpOverloaded,
                _ => ErrorClass::HttpError,
            };
            let body: String = String::from_utf8_lossy(body).chars().take(200).collect();
            (class, body.trim().to_owned())
        }
    };
    WireError { class, message: format!("it answers {status} to {path}: {why}") }
}

/// What nvidia-smi prints, if it does in time.
fn nvidia_smi(timeout: Duration) -> anyhow::Result<Vec<u8>> {
    const LOOK_AGAIN: Duration = Duration::from_millis(5);
    let mut child = Command::new("nvidia-smi")
        .args([QUERY, "--format=csv"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("nvidia-smi cannot be started (is there an NVIDIA GPU in this machine?)")?;
    let deadline = mono_now() + Nanos(timeout.as_nanos() as i64);
    // What it prints of a hundred GPUs fits into the pipe.
    let status = loop {
        if let Some(status) = child.try_wait().context("cannot wait for nvidia-smi")? {
            break status;
        }
        if mono_now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            let message = "nvidia-smi gave no answer in time".to_owned();
            return Err(WireError { class: ErrorClass::TimeoutTotal, message }.into());
        }
        std::thread::sleep(LOOK_AGAIN);
    };
    let mut printed = Vec::new();
    child.stdout.take().map(|mut out| out.read_to_end(&mut printed)).transpose()?;
    if !status.success() {
        bail!("nvidia-smi fails: {}", String::from_utf8_lossy(&printed).trim());
    }
    Ok(printed)
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
