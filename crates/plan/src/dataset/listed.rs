//! The prompts of a file, to be taken in turn: in memory while they are small, else read again from the file when they
//! are wanted.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Mutex;

use super::rows::{Part, Reader};
use super::{DatasetError, Item, Place, Rows};

/// Bytes of records up to which their prompts are held in memory.
const HELD: u64 = 64 << 20;

/// The prompts of a file.
#[derive(Debug)]
pub struct Listed {
    /// Tokens of each answer, if the file says so.
    outputs: Vec<Option<u32>>,
    /// Words of the longest.
    longest: u64,
    /// Turns of the conversation with most.
    most_turns: usize,
    items: Items,
}

#[derive(Debug)]
enum Items {
    Held(Vec<Item>),
    /// Every worker asks for a few microseconds at a time, ahead of its need.
    OnDisk {
        file: Mutex<File>,
        places: Vec<Place>,
        reader: Reader,
    },
}

impl Listed {
    /// Reads the prompts of a file. Conversations without a question are left out; a file of lengths alone has none.
    pub fn load(path: &Path) -> Result<Self, DatasetError> {
        Self::load_holding(path, Part::First, HELD)
    }

    /// The same with all turns of each conversation.
    pub fn load_turns(path: &Path) -> Result<Self, DatasetError> {
        Self::load_holding(path, Part::Whole, HELD)
    }

    fn load_holding(path: &Path, part: Part, held: u64) -> Result<Self, DatasetError> {
        let mut rows = Rows::open_part(path, part)?;
        let (mut longest, mut most_turns) = (0, 1);
        let (mut outputs, mut items, mut places, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for row in &mut rows {
            let row = row?;
            let Some(item) = row.item else {
                if row.turns.is_some() {
                    continue;
                }
                let what = "holds lengths and no prompts: replay it with --trace".to_owned();
                return Err(DatasetError::Kind { path: path.to_owned(), what });
            };
            longest = longest.max(item.words_and_chars().0);
            if let Item::Turns(turns) = &item {
                most_turns = most_turns.max(turns.len());
            }
            outputs.push(row.output_tokens);
            // A packed file cannot be read from its middle.
            if let Some(place) = row.place {
                bytes += u64::from(place.len);
                places.push(place);
            }
            if bytes > held {
                items = Vec::new();
            } else {
                items.push(item);
            }
        }
        if outputs.is_empty() {
            return Err(DatasetError::Empty(path.to_owned()));
        }
        let items = if bytes > held {
            let read = |source| DatasetError::Read { path: path.to_owned(), source };
            let file = Mutex::new(File::open(path).map_err(read)?);
            Items::OnDisk { file, places, reader: rows.reader() }
        } else {
            Items::Held(items)
        };
        Ok(Self { outputs, longest, most_turns, items })
    }

    fn at(&self, number: u64) -> usize {
        (number % self.outputs.len().max(1) as u64) as usize
    }

    /// Prompt number `number`; beyond the last one the first comes again. `None` when the file has changed since it
    /// was read.
    pub fn item(&self, number: u64) -> Option<Cow<'_, Item>> {
        match &self.items {
            Items::Held(items) => items.get(self.at(number)).map(Cow::Borrowed),
            Items::OnDisk { file, places, reader } => {
                let place = places.get(self.at(number))?;
                let mut bytes = vec![0; place.len as usize];
                let mut file = file.lock().ok()?;
                file.seek(SeekFrom::Start(place.at)).ok()?;
                file.read_exact(&mut bytes).ok()?;
                drop(file);
                let text = std::str::from_utf8(&bytes).ok()?.trim_end_matches(['\r', '\n']);
                reader.row(0, text).ok()?.item.map(Cow::Owned)
            }
        }
    }

    /// How many there are; at least one.
    pub fn count(&self) -> usize {
        self.outputs.len()
    }

    /// Tokens of that prompt's answer, if the file says so.
    pub fn output_tokens(&self, number: u64) -> Option<u32> {
        self.outputs.get(self.at(number)).copied().flatten()
    }

    /// Words of the longest prompt; of a conversation all turns together.
    pub const fn longest(&self) -> u64 {
        self.longest
    }

    /// Turns of the conversation with most.
    pub const fn most_turns(&self) -> usize {
        self.most_turns
    }

    /// The longest answer that the file asks for.
    pub fn most_output(&self) -> Option<u32> {
        self.outputs.iter().copied().flatten().max()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_on_disk_reads_as_what_is_held() {
        for (text, part) in [
            "\u{feff}one\r\n\n  two words \nthree",
            "{\"prompt\":\"one\",\"output_tokens\":3}\r\n\r\n{\"messages\":[{\"role\":\"user\",\"content\":\"é\"}]}\n",
            "[ {\"conversations\":[]},\n{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"}]} ,{\"prompt\":\"p\"}\n]",
        ]
        .into_iter()
        .flat_map(|text| [(text, Part::First), (text, Part::Whole)])
        {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let held = Listed::load_holding(file.path(), part, 1_000).unwrap();
            let on_disk = Listed::load_holding(file.path(), part, 5).unwrap();
            assert!(matches!(on_disk.items, Items::OnDisk { .. }) && matches!(held.items, Items::Held(_)));
            for number in 0..7 {
                assert!(held.item(number).is_some());
                assert_eq!(held.item(number), on_disk.item(number), "{text} {number}");
                assert_eq!(held.output_tokens(number), on_disk.output_tokens(number));
            }
        }
    }
}
