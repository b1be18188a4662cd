//! The run folder: records to and from disk.
//!
//! `requests.arrow` is one Arrow IPC stream of append-only batches: after a kill or a full disk it can be read
//! up to its last whole batch. Nothing here interprets a record; derived values belong to who judges.
//!
//! Other programs read the file of a finished run as any Arrow stream: `pyarrow.ipc.open_stream(path).read_all()`,
//! `polars.read_ipc_stream(path)`. The file of a killed run may end within a batch, which both take for an error;
//! pyarrow then gives the whole batches when it is asked for one after the other:
//!
//! ```python
//! stream, batches = pyarrow.ipc.open_stream("requests.arrow"), []
//! try:
//!     for batch in stream:
//!         batches.append(batch)
//! except (pyarrow.ArrowInvalid, OSError):
//!     pass  # the batch that was being written
//! table = pyarrow.Table.from_batches(batches, stream.schema)  # polars.from_arrow(table)
//! ```

#![forbid(unsafe_code)]

mod columns;
mod decode;
mod encode;
mod error;
mod files;
mod folder;
mod journal;
mod layout;
mod reader;
pub mod redact;
mod schema;
mod scrape_log;
mod scrapes;
mod stream;
mod writer;

pub use error::StoreError;
pub use files::{replace_file, write_json};
pub use folder::{Place, folder_name, names};
pub use journal::Appended;
pub use layout::Events;
pub use reader::{RUN_SCHEMA, RequestReader, StoredRun, read_run};
pub use schema::{REQUESTS_SCHEMA, RequestsInfo};
pub use scrapes::{Missed, SCRAPES_SCHEMA, Scrape, ScrapeFile, ScrapeKind, ScrapesRead, read_scrapes};
pub use writer::{Finished, RunFolder};
