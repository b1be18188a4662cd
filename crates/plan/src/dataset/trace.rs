//! A trace as it is replayed: when each request arrives, and how long its prompt and answer are.

use std::path::Path;

use ttft_model::Nanos;

use super::unit::UnitEvidence;
use super::{Arrivals, DatasetError, Format, Instant, Item, Rows, TimeUnit};

/// One request of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// After the first of the trace.
    pub offset: Nanos,
    /// Tokens of its prompt, if the trace says so.
    pub input_tokens: Option<u32>,
    /// Tokens of its answer, if the trace says so.
    pub output_tokens: Option<u32>,
    /// Ids of the blocks of its prompt.
    pub blocks: Box<[u64]>,
    /// Its prompt, where the trace has the text.
    pub item: Option<Box<Item>>,
}

/// A trace, in the order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its format.
    pub format: Format,
    /// Its requests; the first is at zero.
    pub requests: Vec<Recorded>,
    /// Tokens of a block that [`Recorded::blocks`] names.
    pub block_size: u32,
    /// The unit that its timestamps were taken to be of.
    pub unit: TimeUnit,
}

impl Trace {
    /// Loads a trace. Any record that cannot be used is an error: a replay that left some out would be another load.
    pub fn load(path: &Path, asked: Option<Format>) -> Result<Self, DatasetError> {
        let mut rows = Rows::open(path, asked)?;
        let format = rows.format();
        let mut evidence = UnitEvidence::default();
        let mut sizes = BlockSize::default();
        let mut found: Vec<(Instant, Recorded)> = Vec::new();
        for row in &mut rows {
            let row = row?;
            let Some(time) = row.time else {
                return Err(DatasetError::NoTime { path: path.to_owned(), line: row.line, format });
            };
            evidence.push(time);
            sizes.push(row.input_tokens, row.blocks.len());
            let recorded = Recorded {
                offset: Nanos::ZERO,
                input_tokens: row.input_tokens,
                output_tokens: row.output_tokens,
                blocks: row.blocks.into(),
                item: row.item.map(Box::new),
            };
            found.push((time, recorded));
        }
        if found.is_empty() {
            return Err(DatasetError::Empty(path.to_owned()));
        }
        let rate = |unit| evidence.rate(unit).map_or("all at once".to_owned(), significant);
        let unit = evidence.unit(format, asked).ok_or_else(|| DatasetError::Unit {
            path: path.to_owned(),
            as_ms: rate(TimeUnit::Millis),
            as_s: rate(TimeUnit::Seconds),
        })?;
        let first = found.iter().map(|(time, _)| time.nanos(unit)).min().unwrap_or_default();
        let mut requests: Vec<Recorded> = found
            .into_iter()
            .map(|(time, recorded)| Recorded { offset: time.nanos(unit) - first, ..recorded })
            .collect();
        // Stable: what arrived together stays in the file's order.
        requests.sort_by_key(|recorded| recorded.offset);
        Ok(Self { format, requests, block_size: sizes.size().unwrap_or(BLOCK), unit })
    }

    /// When each request is due, `speed` times as fast as recorded. `smooth` spreads those of equal instants evenly
    /// to the next one; those of the last instant over as long as the ones before had.
    pub fn schedule(&self, speed: f64, smooth: bool) -> Vec<Nanos> {
        let mut due: Vec<f64> = Vec::with_capacity(self.requests.len());
        let mut width = 0.0;
        for burst in self.requests.chunk_by(|a, b| a.offset == b.offset) {
            let at = burst[0].offset;
            if let Some(next) = self.requests.get(due.len() + burst.len()) {
                width = (next.offset - at).0 as f64;
            }
            let step = if smooth { width / burst.len() as f64 } else { 0.0 };
            due.extend((0..burst.len()).map(|i| at.0 as f64 + step * i as f64));
        }
        due.into_iter().map(|at| Nanos((at / speed) as i64)).collect()
    }

    /// How the requests arrived.
    pub fn arrivals(&self) -> Arrivals {
        let at: Vec<i64> = self.requests.iter().map(|recorded| recorded.offset.0).collect();
        Arrivals::of(&at)
    }

    /// Whether prompts share blocks, as far as the trace says.
    pub fn shares_prefixes(&self) -> bool {
        self.requests.iter().any(|recorded| !recorded.blocks.is_empty())
    }

    /// The longest prompt, if the trace says so.
    pub fn most_input(&self) -> Option<u32> {
        self.requests.iter().filter_map(|recorded| recorded.input_tokens).max()
    }

    /// The largest answer that the trace asks for.
    pub fn most_output(&self) -> Option<u32> {
        self.requests.iter().filter_map(|recorded| recorded.output_tokens).max()
    }
}

/// Tokens of a block in Mooncake's traces.
pub(super) const BLOCK: u32 = 512;

/// Which sizes of blocks agree with every prompt: `blocks = ⌈input / size⌉`.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockSize {
    least: u32,
    most: u32,
    is_known: bool,
}

impl Default for BlockSize {
    fn default() -> Self {
        Self { least: 1, most: u32::MAX, is_known: false }
    }
}

impl BlockSize {
    pub(super) fn push(&mut self, input: Option<u32>, blocks: usize) {
        let (Some(input), Ok(blocks)) = (input.filter(|input| *input > 0), u32::try_from(blocks)) else {
            return;
        };
        if blocks == 0 {
            return;
        }
        self.is_known = true;
        self.least = self.least.max(input.div_ceil(blocks));
        if blocks > 1 {
            // The largest size that still needs so many blocks.
            self.most = self.most.min((input - 1) / (blocks - 1));
        }
    }

    /// The size: 512 where it fits, else a power of two, else the smallest; `None` where none fits.
    pub(super) fn size(self) -> Option<u32> {
        let fits = |size: &u32| self.least <= *size && *size <= self.most;
        let powers = (0..31).map(|power| 1u32 << power);
        std::iter::once(BLOCK).chain(powers).chain([self.least]).find(fits).filter(|_| self.is_known)
    }
}

/// Three figures.
pub(super) fn significant(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 0.01 => format!("{v:.2}"),
        v => format!("{v:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn load(text: &str, asked: Option<Format>) -> Result<Trace, DatasetError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Trace::load(file.path(), asked)
    }

    fn millis(due: &[Nanos]) -> Vec<f64> {
        due.iter().map(|due| due.as_millis_f64()).collect()
    }

    const MOONCAKE: &str = "\
{\"timestamp\": 3000, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [1, 3]}
{\"timestamp\": 0, \"input_length\": 512, \"output_length\": 7, \"hash_ids\": [1]}
{\"timestamp\": 0, \"input_length\": 1030, \"output_length\": 9, \"hash_ids\": [1, 2, 4]}
{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 1, \"hash_ids\": [9]}
{\"timestamp\": 3000, \"input_length\": 10, \"output_length\": 1, \"hash_ids\": [9]}";

    #[test]
    fn arrivals_are_sorted_sped_up_and_smoothed() {
        let trace = load(MOONCAKE, None).unwrap();
        assert_eq!((trace.unit, trace.block_size, trace.most_output()), (TimeUnit::Millis, 512, Some(9)));
        assert_eq!(millis(&trace.schedule(1.0, false)), [0.0, 0.0, 0.0, 3000.0, 3000.0]);
        assert_eq!(millis(&trace.schedule(2.0, true)), [0.0, 500.0, 1000.0, 1500.0, 2250.0]);
        let inputs: Vec<_> = trace.requests.iter().filter_map(|recorded| recorded.input_tokens).collect();
        assert_eq!(inputs, [512, 1030, 10, 600, 10]);
    }

    #[test]
    fn what_cannot_be_replayed_is_refused() {
        let line = |time: &str| format!("{{{time}\"input_length\": 5, \"output_length\": 5}}\n");
        let missing = line("\"timestamp\": 0,") + &line("");
        assert!(load(&missing, None).unwrap_err().to_string().contains("line 2: no timestamp"));
        let steps: String =
            (0..20).map(|i| line(&format!("\"timestamp\": {},", f64::from(i) * 0.2))).collect();
        let unclear = load(&steps, None).unwrap_err().to_string();
        assert!(
            unclear.contains("milliseconds they are 5000") && unclear.contains("seconds 5.00"),
            "{unclear}"
        );
        assert_eq!(load(&steps, Some(Format::GuideLlm)).unwrap().unit, TimeUnit::Seconds);
        assert!(load("{\"prompt\": \"a\"}", None).unwrap_err().to_string().contains("no timestamp"));
        assert!(load("TIMESTAMP,ContextTokens,GeneratedTokens\r\n", None).is_err());
    }

    #[test]
    fn the_size_of_blocks_is_what_fits() {
        let size = |rows: &[(u32, usize)]| {
            let mut sizes = BlockSize::default();
            for (input, blocks) in rows {
                sizes.push(Some(*input), *blocks);
            }
            sizes.size()
        };
        assert_eq!(size(&[(1030, 3), (512, 1)]), Some(512));
        assert_eq!(size(&[(1030, 65), (16, 1)]), Some(16));
        assert_eq!(size(&[(100, 2), (300, 1)]), None);
        assert_eq!(size(&[]), None);
    }
}
