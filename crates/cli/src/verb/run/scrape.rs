//! Scrapes pages beside the load: each source by a thread of its own, so that a slow one delays no other, and none is
//! asked twice at once.
//!
//! The threads have the lowest priority: where all cores are the load's, a scrape is what comes late. At the edges of a
//! stage nothing is under way, and the conductor waits for the page, so that the window between the two pages holds all
//! requests of the stage and no other of ours. It does not wait for ever: a page that comes when it has gone on is no
//! edge but a gap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use ttft_drive::{AtEdge, Edge, Side};
use ttft_kernel::{mono_now, real_now, yield_to_others};
use ttft_model::Nanos;
use ttft_sources::{Catalogue, Page, Reading};
use ttft_store::{Missed, Scrape, ScrapeFile, ScrapeKind};

use crate::exit;
use crate::verb::metrics::source::{Fetcher, Source, class};

/// Between two samples of a source,
const EVERY: Nanos = Nanos::from_millis(1_000);
/// and after something that is no page, which will hardly be one a second later.
const EVERY_NO_PAGE: Nanos = Nanos::from_millis(10_000);

/// How long a page may take.
pub(super) const TIMEOUT: Nanos = Nanos::from_millis(1_000);

/// After so many failures in a row nobody waits for a source any more, until it answers again.
const PATIENCE: u32 = 3;

/// Bytes of a page, unpacked.
pub(super) const LIMIT: usize = 16 << 20;

/// Between the end of the last answer and the page that is to hold it: engines count a request just after its last byte.
const SETTLE: Duration = Duration::from_millis(50);
/// When the page counts fewer requests than ended well, it is asked for again after each of these.
const COUNTS_LATER: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400)];

/// A source that is to be scraped.
pub(super) struct Watched {
    pub(super) file: ScrapeFile,
    pub(super) source: Source,
    pub(super) fetcher: Fetcher,
    /// It has answered just now.
    pub(super) answers: bool,
}

/// What a scraper tells.
pub(super) type Scraped = (ScrapeFile, Scrape);

/// All sources of a run, being scraped.
pub(super) struct Scraping {
    pub(super) news: Receiver<Scraped>,
    stop: Arc<AtomicBool>,
}

/// A source as the conductor sees it.
struct Lane {
    orders: Sender<Order>,
    failures: Arc<AtomicU32>,
}

/// A page is wanted now.
struct Order {
    edge: Edge,
    /// Who waits for it, and whether they have gone on.
    done: Option<Sender<()>>,
    gone_on: Arc<AtomicBool>,
}

/// Starts to scrape; what is to be called at the edges comes with it. Nothing is scraped for an empty list.
pub(super) fn start(watched: Vec<Watched>, zero: Nanos) -> anyhow::Result<(Scraping, Option<AtEdge>)> {
    let (tell, news) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let mut lanes = Vec::new();
    for Watched { file, source, fetcher, answers } in watched {
        let (orders, ordered) = channel();
        let failures = Arc::new(AtomicU32::new(u32::from(!answers)));
        lanes.push(Lane { orders, failures: failures.clone() });
        let scraper = Scraper {
            file,
            source,
            fetcher,
            catalogue: Catalogue::builtin()?,
            zero,
            tell: tell.clone(),
            failures,
            stage: None,
            begun: None,
        };
        let stop = stop.clone();
        std::thread::spawn(move || scraper.run(&ordered, &stop));
    }
    let at_edge = (!lanes.is_empty()).then(|| Box::new(move |edge| wait_at(&lanes, edge)) as AtEdge);
    Ok((Scraping { news, stop }, at_edge))
}

/// Has all sources scraped, and waits for those that answer. A sample may be under way, and each wait is bounded.
fn wait_at(lanes: &[Lane], edge: Edge) {
    let (done, is_done) = channel();
    let gone_on = Arc::new(AtomicBool::new(false));
    for lane in lanes {
        let answers = lane.failures.load(Ordering::Relaxed) < PATIENCE;
        let order = Order { edge, done: answers.then(|| done.clone()), gone_on: gone_on.clone() };
        // A scraper whose news nobody wants any more has ended.
        let _ = lane.orders.send(order);
    }
    drop(done);
    let deadline = mono_now() + Nanos(3 * TIMEOUT.0);
    // Until all have said so.
    while is_done.recv_timeout((deadline - mono_now()).to_std()).is_ok() {}
    gone_on.store(true, Ordering::Release);
}

impl Scraping {
    /// Ends it, and gives what is still on its way. A source that hangs is not waited for.
    pub(super) fn finish(&self) -> Vec<Scraped> {
        self.stop.store(true, Ordering::Relaxed);
        let deadline = mono_now() + TIMEOUT;
        std::iter::from_fn(|| self.news.recv_timeout((deadline - mono_now()).to_std()).ok()).collect()
    }
}

/// Scrapes one source.
struct Scraper {
    file: ScrapeFile,
    source: Source,
    fetcher: Fetcher,
    catalogue: Catalogue,
    /// The zero of the run's axis.
    zero: Nanos,
    tell: Sender<Scraped>,
    failures: Arc<AtomicU32>,
    /// The stage under way.
    stage: Option<u32>,
    /// The page at the last part's begin.
    begun: Option<Page>,
}

/// What one scrape brought.
struct Got {
    scrape: Scrape,
    /// The page, and as it came.
    page: Option<(Page, Vec<u8>)>,
}

impl Scraper {
    /// Until nobody listens any more.
    fn run(mut self, ordered: &Receiver<Order>, stop: &AtomicBool) {
        yield_to_others();
        let mut next = mono_now();
        loop {
            let is_told = match ordered.recv_timeout((next - mono_now()).to_std()) {
                Ok(order) => self.at_edge(order),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let got = self.scrape(ScrapeKind::Sample);
                    next = next + if got.is_no_page() { EVERY_NO_PAGE } else { EVERY };
                    // What came late is a gap: it is not made up for.
                    while next <= mono_now() {
                        next = next + EVERY;
                    }
                    self.tell(got, false)
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if !is_told {
                return;
            }
        }
    }

    fn at_edge(&mut self, order: Order) -> bool {
        let edge = order.edge;
        let kind = if edge.side == Side::Begin { ScrapeKind::Begin } else { ScrapeKind::End };
        if edge.side == Side::Begin {
            self.stage = edge.stage;
        }
        let mut got =
            if order.gone_on.load(Ordering::Acquire) { self.late(kind) } else { self.edge(kind, edge.ok) };
        if order.gone_on.load(Ordering::Acquire) && got.page.is_some() {
            got = self.late(kind);
        }
        self.begun = got.page.as_ref().filter(|_| edge.side == Side::Begin).map(|(page, _)| page.clone());
        let is_told = self.tell(got, edge.stage.is_some());
        if edge.side == Side::End {
            self.stage = None;
        }
        // Told first: what has been waited for is on its way when the wait is over.
        if let Some(done) = order.done {
            // The conductor may have gone on.
            let _ = done.send(());
        }
        is_told
    }

    /// The page at an edge. At an end it is to count the `ok` requests that ended well.
    fn edge(&self, kind: ScrapeKind, ok: u64) -> Got {
        if kind == ScrapeKind::Begin {
            return self.scrape(kind);
        }
        let asked = mono_now();
        std::thread::sleep(SETTLE);
        let mut got = self.scrape(kind);
        for pause in COUNTS_LATER {
            // One that is slow is not waited for again and again.
            if !self.lacks(&got, ok) || mono_now() - asked > TIMEOUT {
                break;
            }
            std::thread::sleep(pause);
            let again = self.scrape(kind);
            if again.page.is_some() {
                got = again;
            }
        }
        got
    }

    /// An edge that was missed.
    fn late(&self, kind: ScrapeKind) -> Got {
        let message = "there was no page before the run went on".to_owned();
        let mut scrape = self.blank(kind, mono_now(), real_now());
        scrape.error = Some(Missed { class: "late".to_owned(), message });
        Got { scrape, page: None }
    }

    /// Whether the page counts fewer requests since the begin than ended well. One that does not count them lacks none.
    fn lacks(&self, got: &Got, ok: u64) -> bool {
        let (Some(before), Some((after, _))) = (&self.begun, &got.page) else { return false };
        let reading = self.catalogue.read_window(before, after, None);
        let window = reading.window.filter(|window| !window.reset_detected && !window.other_process);
        let counted = window.and_then(|window| window.values.get("requests_finished_ok")?.number());
        counted.is_some_and(|counted| counted < ok as f64)
    }

    fn scrape(&self, kind: ScrapeKind) -> Got {
        let (asked, unix_ns) = (mono_now(), real_now());
        let fetched = self.fetcher.page(&self.source);
        let mut scrape = self.blank(kind, asked, unix_ns);
        scrape.duration_ns = fetched.as_ref().map_or_else(|_| mono_now(), |fetched| fetched.at) - asked;
        let page = match fetched {
            Ok(fetched) => {
                take_values(&self.catalogue.read(&fetched.page), &mut scrape);
                Some((fetched.page, fetched.plain))
            }
            Err(error) => {
                scrape.error = Some(Missed { class: class(&error).to_owned(), message: exit::words(&error) });
                None
            }
        };
        match page {
            Some(_) => self.failures.store(0, Ordering::Relaxed),
            None => drop(self.failures.fetch_add(1, Ordering::Relaxed)),
        }
        Got { scrape, page }
    }

    fn blank(&self, kind: ScrapeKind, asked: Nanos, unix_ns: i64) -> Scrape {
        Scrape {
            kind,
            source: self.source.name.clone(),
            stage: self.stage,
            at_ns: asked - self.zero,
            unix_ns,
            duration_ns: Nanos::ZERO,
            engine: None,
            values: BTreeMap::new(),
            error: None,
            page: None,
        }
    }

    /// Tells a scrape, with its page at the edges of a stage; false when nobody listens.
    fn tell(&self, got: Got, with_page: bool) -> bool {
        let Got { mut scrape, page } = got;
        let text = page.filter(|_| with_page).map(|(_, plain)| String::from_utf8_lossy(&plain).into_owned());
        scrape.page = text;
        self.tell.send((self.file, scrape)).is_ok()
    }
}

impl Got {
    /// Something answered, but with no page.
    fn is_no_page(&self) -> bool {
        const PASSING: [&str; 8] = [
            "timeout_total",
            "connect_refused",
            "connect_timeout",
            "reset",
            "dns",
            "http_overloaded",
            "http_rate_limited",
            "client",
        ];
        self.scrape.error.as_ref().is_some_and(|missed| !PASSING.contains(&missed.class.as_str()))
    }
}

/// The values that are no distributions, of all that a page is of.
fn take_values(reading: &Reading, scrape: &mut Scrape) {
    scrape.engine.clone_from(&reading.engine);
    for reading in std::iter::once(reading).chain(&reading.also) {
        for (name, value) in &reading.values {
            if let Some(number) = value.number().filter(|number| number.is_finite()) {
                scrape.values.entry((*name).to_owned()).or_insert(number);
            }
        }
    }
}
