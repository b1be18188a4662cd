//! Scrapes pages beside the load: each source by a thread of its own, so that a slow one delays no other, and none is
//! asked twice at once.
//!
//! The threads have the lowest priority: where all cores are the load's, a scrape is what comes late. At the edges of a
//! stage nothing is under way, and the conductor waits for the page, so that the window between the two pages holds all
//! requests of the stage and no other of ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Whether the last scrape brought a page: nobody waits for a source that does not answer.
    answers: Arc<AtomicBool>,
}

/// A page is wanted now.
struct Order {
    edge: Edge,
    /// Who waits for it.
    done: Option<Sender<()>>,
}

/// Starts to scrape; what is to be called at the edges comes with it. Nothing is scraped for an empty list.
pub(super) fn start(watched: Vec<Watched>, zero: Nanos) -> anyhow::Result<(Scraping, Option<AtEdge>)> {
    let (tell, news) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let mut lanes = Vec::new();
    for Watched { file, source, fetcher, answers } in watched {
        let (orders, ordered) = channel();
        let answers = Arc::new(AtomicBool::new(answers));
        lanes.push(Lane { orders, answers: answers.clone() });
        let scraper = Scraper {
            file,
            source,
            fetcher,
            catalogue: Catalogue::builtin()?,
            zero,
            tell: tell.clone(),
            answers,
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
    let mut awaited = 0;
    for lane in lanes {
        let answers = lane.answers.load(Ordering::Relaxed);
        let order = Order { edge, done: answers.then(|| done.clone()) };
        awaited += u32::from(lane.orders.send(order).is_ok() && answers);
    }
    drop(done);
    let deadline = mono_now() + Nanos(3 * TIMEOUT.0);
    while awaited > 0 {
        match is_done.recv_timeout((deadline - mono_now()).to_std()) {
            Ok(()) => awaited -= 1,
            Err(_) => return,
        }
    }
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
    answers: Arc<AtomicBool>,
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
        while !stop.load(Ordering::Relaxed) {
            let is_told = match ordered.recv_timeout((next - mono_now()).to_std()) {
                Ok(order) => {
                    let is_told = self.at_edge(order.edge);
                    if let Some(done) = order.done {
                        // The conductor may have gone on.
                        let _ = done.send(());
                    }
                    is_told
                }
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

    fn at_edge(&mut self, edge: Edge) -> bool {
        match edge.side {
            Side::Begin => {
                self.stage = edge.stage;
                let got = self.scrape(ScrapeKind::Begin);
                self.begun = got.page.as_ref().map(|(page, _)| page.clone());
                self.tell(got, edge.stage.is_some())
            }
            Side::End => {
                std::thread::sleep(SETTLE);
                let mut got = self.scrape(ScrapeKind::End);
                for pause in COUNTS_LATER {
                    if !self.lacks(&got, edge.ok) {
                        break;
                    }
                    std::thread::sleep(pause);
                    got = self.scrape(ScrapeKind::End);
                }
                let told = self.tell(got, edge.stage.is_some());
                self.stage = None;
                told
            }
        }
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
        let mut scrape = Scrape {
            kind,
            source: self.source.name.clone(),
            stage: self.stage,
            at_ns: asked - self.zero,
            unix_ns,
            duration_ns: fetched.as_ref().map_or_else(|_| mono_now(), |fetched| fetched.at) - asked,
            engine: None,
            values: std::collections::BTreeMap::new(),
            error: None,
            page: None,
        };
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
        self.answers.store(page.is_some(), Ordering::Relaxed);
        Got { scrape, page }
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
        const PASSING: [&str; 7] = [
            "timeout_total",
            "connect_refused",
            "connect_timeout",
            "reset",
            "dns",
            "http_overloaded",
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
