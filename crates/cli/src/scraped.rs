//! What was scraped beside a run, read from its folder: one entry for each source and stage.

use std::path::Path;

use ttft_judge::server::{Levels, SourceStage};
use ttft_sources::{Catalogue, Page, Reading, Role};
use ttft_store::{Scrape, ScrapeFile, ScrapeKind, read_scrapes};

use crate::output;

/// What a folder's scrapes tell.
pub(crate) struct Scraped {
    /// Servers before accelerators, by stage and name.
    pub(crate) stages: Vec<SourceStage>,
    /// The engine under test, by its name in the catalogue.
    pub(crate) engine: Option<String>,
}

/// Reads all scrapes of a run folder. Lines that are none are told of and passed over.
pub(crate) fn read(folder: &Path) -> anyhow::Result<Scraped> {
    let catalogue = Catalogue::builtin()?;
    let mut under_way: Vec<UnderWay> = Vec::new();
    let mut first_engine = None;
    for file in ScrapeFile::ALL {
        let read = read_scrapes(folder, file, |scrape| {
            if first_engine.is_none() && file == ScrapeFile::Server {
                first_engine.clone_from(&scrape.engine);
            }
            let Some(stage) = scrape.stage else { return };
            let is_of = |known: &UnderWay| known.of.stage == stage && known.of.source == scrape.source;
            let at = under_way.iter().rposition(is_of).unwrap_or_else(|| {
                under_way.push(UnderWay::new(file, stage, scrape.source.clone()));
                under_way.len() - 1
            });
            under_way[at].take(scrape, &catalogue);
        })?;
        if read.unreadable > 0 {
            let path = folder.join(file.name());
            output::note(&format!(
                "{}: {} unreadable lines are passed over",
                path.display(),
                read.unreadable
            ));
        }
    }
    // Which source of a second was written first is chance.
    under_way.sort_by(|a, b| (a.file, a.of.stage, &a.of.source).cmp(&(b.file, b.of.stage, &b.of.source)));
    let stages: Vec<SourceStage> = under_way.into_iter().map(|under_way| under_way.of).collect();
    let engine = of_role(&stages, Role::Engine).or_else(|| of_role(&stages, Role::Gateway)).or(first_engine);
    Ok(Scraped { stages, engine })
}

fn of_role(stages: &[SourceStage], role: Role) -> Option<String> {
    let readings = stages.iter().filter_map(|stage| stage.reading.as_ref());
    let mut all = readings.flat_map(|reading| std::iter::once(reading).chain(&reading.also));
    all.find(|reading| reading.role == Some(role)).and_then(|reading| reading.engine.clone())
}

/// A source over a stage whose end is yet to be read.
struct UnderWay {
    file: ScrapeFile,
    of: SourceStage,
    /// The scrape at its begin, until the one at its end has been compared with it.
    begun: Option<Scrape>,
}

impl UnderWay {
    fn new(file: ScrapeFile, stage: u32, source: String) -> Self {
        let of = SourceStage { stage, source, reading: None, levels: Vec::new(), missed: 0 };
        Self { file, of, begun: None }
    }

    fn take(&mut self, scrape: Scrape, catalogue: &Catalogue) {
        self.of.missed += u32::from(scrape.error.is_some());
        match scrape.kind {
            ScrapeKind::Begin => self.begun = Some(scrape),
            ScrapeKind::End => {
                self.of.reading = self.begun.take().and_then(|begun| window(&begun, &scrape, catalogue));
            }
            ScrapeKind::Sample if scrape.error.is_none() => {
                let known = scrape.values.iter().filter_map(|(name, value)| {
                    let (name, _) = ttft_sources::shape(name)?;
                    Some((name, *value))
                });
                self.of.levels.push(Levels { at: scrape.at_ns, values: known.collect() });
            }
            ScrapeKind::Sample => {}
        }
    }
}

/// The page at the end with what grew since the one at the begin; nothing if one of them is missing.
fn window(begin: &Scrape, end: &Scrape, catalogue: &Catalogue) -> Option<Reading> {
    let page = |scrape: &Scrape| Page::parse(scrape.page.as_deref()?.as_bytes()).ok();
    let seconds = (end.at_ns - begin.at_ns).as_secs_f64();
    Some(catalogue.read_window(&page(begin)?, &page(end)?, Some(seconds)))
}
