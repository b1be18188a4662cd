//! What a page is, told from its bytes.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use crate::page::Page;
use crate::{Error, exposition, smi, trtllm};

/// Bytes of a page that are read at most, unpacked.
pub const MAX_PAGE: usize = 64 << 20;

impl Page {
    /// Reads a page in any format that is known, gzip or plain.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        plain_page(&unpack(bytes, MAX_PAGE)?)
    }
}

/// What came, out of gzip if it is packed; `limit` bytes at most.
pub fn unpack(bytes: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, Error> {
    if bytes.len() > limit {
        return Err(Error::TooLarge { limit });
    }
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut plain = Vec::new();
    let mut unpacked = MultiGzDecoder::new(bytes).take(limit as u64 + 1);
    unpacked.read_to_end(&mut plain).map_err(Error::Gzip)?;
    if plain.len() > limit { Err(Error::TooLarge { limit }) } else { Ok(Cow::Owned(plain)) }
}

fn plain_page(bytes: &[u8]) -> Result<Page, Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let start = text.trim_start();
    if start.is_empty() {
        return Err(Error::Empty);
    }
    if start.starts_with('<') {
        return Err(Error::Html { title: title(start) });
    }
    // A series with its name in braces begins like an object; JSON settles it.
    if start.starts_with(['[', '{'])
        && let Ok(value) = serde_json::from_str::<Value>(start)
    {
        return trtllm::page(&value).ok_or(Error::Json);
    }
    if let Some(page) = smi::page(start) {
        return Ok(page);
    }
    exposition::parse(&text)
}

fn title(html: &str) -> Option<String> {
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let end = start + lower[start..].find('<')?;
    let title: String = html.get(start..end)?.trim().chars().take(80).collect();
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::page::Format;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn formats() {
        assert!(matches!(Page::parse(b""), Err(Error::Empty)));
        assert!(matches!(Page::parse(b"\xef\xbb\xbf \r\n"), Err(Error::Empty)));
        let html = Page::parse(b"<!DOCTYPE html><html><TITLE>Sign in</title>").unwrap_err();
        assert_eq!(html.to_string(), "the page is HTML (`Sign in`), not metrics: is this the right address?");
        assert!(matches!(Page::parse(br#"{"error":"no"}"#), Err(Error::Json)));
        assert_eq!(Page::parse(br#"{"vllm.x"} 1"#).unwrap().format, Format::Prometheus);
        assert_eq!(Page::parse(&packed(b"x 1\n")).unwrap().len(), 1);
        let whole = packed(b"x 1\n");
        assert!(matches!(Page::parse(&whole[..whole.len() - 5]), Err(Error::Gzip(_))));
    }

    #[test]
    fn a_page_that_unpacks_to_more_than_is_read() {
        let bomb = packed(&vec![b' '; MAX_PAGE + 1]);
        assert!(bomb.len() < 1 << 20);
        assert_eq!(Page::parse(&bomb).unwrap_err().to_string(), "the page is larger than 64 MiB");
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let _ = Page::parse(&bytes);
        }

        #[test]
        fn bytes_after_the_head_of_gzip_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Page::parse(&[&[0x1f, 0x8b, 8, 0][..], &bytes].concat());
        }
    }
}
