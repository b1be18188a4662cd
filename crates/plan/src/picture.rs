//! Images that are made up: PNG files of one size, each with pixels of its own.
//!
//! What they have in common, a coloured gradient with noise that packs about as well as a photograph, is made once. Each
//! one's own pixels are its first row, packed apart: a PNG may cut its pixels into several chunks, so that only the
//! first has to be made anew. A server sees images of which no two are the same, and the maker copies bytes.
//!
//! PNG (W3C, third edition) and zlib (RFC 1950, RFC 1951).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compress, Compression, Crc, FlushCompress};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use ttft_model::ImageSize;

const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// Bytes of a pixel: 8 bits of red, green and blue.
const PIXEL: usize = 3;

/// Largest prime below 2^16, the modulus of Adler-32.
const ADLER: u32 = 65_521;

/// Most bytes of a stored block.
const BLOCK: usize = 0xffff;

/// Makes images of one size.
#[derive(Debug, Clone)]
pub struct Pictures {
    width: usize,
    /// Signature and header.
    head: Vec<u8>,
    /// The chunk of all rows but the first.
    rest: Vec<u8>,
    /// Adler-32 of those rows, and how many bytes they are.
    rest_sum: u32,
    rest_len: usize,
}

impl Pictures {
    /// Makes what images of that size have in common.
    pub fn new(size: ImageSize, seed: u64) -> Self {
        let (width, height) = (size.width as usize, size.height as usize);
        let mut header = [size.width.to_be_bytes(), size.height.to_be_bytes()].concat();
        // 8 bits a channel, red green blue, the one packing, the one filtering, not interlaced.
        header.extend([8, 2, 0, 0, 0]);
        let mut head = SIGNATURE.to_vec();
        push_chunk(&mut head, *b"IHDR", &header);
        let rows = rows(width, height, seed);
        let mut rest = Vec::new();
        push_chunk(&mut rest, *b"IDAT", &packed(&rows));
        Self { width, head, rest, rest_sum: adler(&rows), rest_len: rows.len() }
    }

    /// The image with pixels that belong to that number.
    pub fn png(&self, number: u128) -> Vec<u8> {
        let mut row = vec![0; 1 + self.width * PIXEL];
        let seed = (number as u64) ^ ((number >> 64) as u64).rotate_left(32);
        SmallRng::seed_from_u64(seed).fill_bytes(&mut row[1..]);
        // The number itself comes first, so that no two images can be the same by chance.
        for (pixel, byte) in row[1..].iter_mut().zip(number.to_le_bytes()) {
            *pixel = byte;
        }
        // A zlib stream of 32 KiB windows, whose first blocks are stored as they are.
        let mut own = vec![0x78, 0x01];
        for block in row.chunks(BLOCK) {
            let len = block.len() as u16;
            own.push(0);
            own.extend(len.to_le_bytes());
            own.extend((!len).to_le_bytes());
            own.extend(block);
        }
        let sum = joined(adler(&row), self.rest_sum, self.rest_len);
        let mut png = Vec::with_capacity(self.head.len() + own.len() + self.rest.len() + 64);
        png.extend(&self.head);
        push_chunk(&mut png, *b"IDAT", &own);
        png.extend(&self.rest);
        push_chunk(&mut png, *b"IDAT", &sum.to_be_bytes());
        push_chunk(&mut png, *b"IEND", &[]);
        png
    }

    /// The same as the URL that stands in a message.
    pub fn data_url(&self, number: u128) -> String {
        let png = self.png(number);
        let mut url = String::with_capacity(32 + png.len().div_ceil(3) * 4);
        url.push_str("data:image/png;base64,");
        STANDARD.encode_string(&png, &mut url);
        url
    }
}

/// All rows but the first, each behind the byte that says that it is not filtered.
fn rows(width: usize, height: usize, seed: u64) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(seed);
    let colours: [i32; 6] = std::array::from_fn(|_| random.random_range(20..220));
    let (wide, high) = (width.max(1) as i32, height.max(1) as i32);
    let mut rows = Vec::with_capacity((height - 1) * (1 + width * PIXEL));
    for y in 1..high {
        rows.push(0);
        for x in 0..wide {
            // Two bits of noise for each channel.
            let noise = random.next_u32();
            for channel in 0..PIXEL {
                let (from, to) = (colours[channel], colours[channel + PIXEL]);
                let along = i32::midpoint(x * high, y * wide);
                let smooth = from + (i64::from(to - from) * i64::from(along) / i64::from(wide * high)) as i32;
                let noise = (noise >> (2 * channel) & 3) as i32;
                rows.push((smooth + noise).clamp(0, 255) as u8);
            }
        }
    }
    rows
}

/// The last blocks of a deflate stream.
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = Compress::new(Compression::default(), false);
    let mut packed = Vec::with_capacity(bytes.len() / 2 + 64);
    loop {
        let from = packer.total_in() as usize;
        // It refuses nothing when it is given room.
        match packer.compress_vec(&bytes[from..], &mut packed, FlushCompress::Finish) {
            Ok(flate2::Status::StreamEnd) | Err(_) => return packed,
            Ok(_) => packed.reserve(packed.len().max(64)),
        }
    }
}

fn push_chunk(png: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    let mut check = Crc::new();
    check.update(&kind);
    check.update(data);
    png.extend((data.len() as u32).to_be_bytes());
    png.extend(kind);
    png.extend(data);
    png.extend(check.sum().to_be_bytes());
}

fn adler(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    // So many additions fit before the sums must be reduced.
    for part in bytes.chunks(5_552) {
        for byte in part {
            a += u32::from(*byte);
            b += a;
        }
        (a, b) = (a % ADLER, b % ADLER);
    }
    b << 16 | a
}

/// Adler-32 of two texts behind one another, the second `len` bytes long.
fn joined(first: u32, second: u32, len: usize) -> u32 {
    let modulus = u64::from(ADLER);
    let (a1, b1) = (u64::from(first & 0xffff), u64::from(first >> 16));
    let (a2, b2) = (u64::from(second & 0xffff), u64::from(second >> 16));
    let len = len as u64 % modulus;
    // The second begins with a sum of a1 where it began with 1 by itself.
    let a = (a1 + a2 + modulus - 1) % modulus;
    let b = (b1 + b2 + len * ((a1 + modulus - 1) % modulus)) % modulus;
    (b << 16 | a) as u32
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    /// The pixels of a PNG with their filter bytes, its chunks checked.
    fn pixels(png: &[u8]) -> (u32, u32, Vec<u8>) {
        assert!(png.starts_with(SIGNATURE));
        let (mut at, mut packed, mut size) = (8, Vec::new(), (0, 0));
        let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        while at < png.len() {
            let (len, kind) = (number(at) as usize, &png[at + 4..at + 8]);
            let data = &png[at + 8..at + 8 + len];
            let mut check = Crc::new();
            check.update(&png[at + 4..at + 8 + len]);
            assert_eq!(check.sum(), number(at + 8 + len));
            match kind {
                b"IHDR" => size = (number(at + 8), number(at + 12)),
                b"IDAT" => packed.extend(data),
                _ => assert_eq!(kind, b"IEND"),
            }
            at += 12 + len;
        }
        let mut rows = Vec::new();
        // Checks the sum of the whole, too.
        ZlibDecoder::new(&packed[..]).read_to_end(&mut rows).unwrap();
        (size.0, size.1, rows)
    }

    #[test]
    fn images_can_be_read_and_differ() {
        for (width, height) in [(64, 48), (1, 1), (3, 500), (30_000, 2)] {
            let pictures = Pictures::new(ImageSize { width, height }, 7);
            let (one, other) = (pictures.png(1), pictures.png(u128::MAX - 1));
            let (wide, high, rows) = pixels(&one);
            assert_eq!((wide, high), (width, height));
            assert_eq!(rows.len(), (height * (1 + width * 3)) as usize);
            assert!(rows.chunks((1 + width * 3) as usize).all(|row| row[0] == 0));
            assert_ne!(rows, pixels(&other).2);
            assert_eq!(one, pictures.png(1));
        }
    }

    #[test]
    fn an_image_weighs_what_a_photograph_does() {
        let bytes = Pictures::new(ImageSize::default(), 7).png(1).len();
        assert!((100_000..500_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn as_a_url() {
        let url = Pictures::new(ImageSize { width: 2, height: 2 }, 1).data_url(1);
        assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
    }
}
