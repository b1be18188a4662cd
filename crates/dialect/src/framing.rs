//! Framing: cuts a body's bytes into events, whatever reads they came in.

mod aws;
mod delimited;
mod json_array;
mod sse;

use serde::Deserialize;

pub(crate) use aws::AwsEventStream;
#[cfg(test)]
pub(crate) use aws::encode;
pub(crate) use delimited::Delimited;
pub(crate) use json_array::JsonArray;
pub(crate) use sse::Sse;

/// The largest event that is read. A larger one ends the stream with an error.
pub(crate) const MAX_EVENT: usize = 16 << 20;

/// How a dialect cuts its stream into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// One JSON value a line.
    Ndjson,
    /// JSON values with a NUL byte after each.
    Nul,
    /// The objects of one JSON array that arrives piece by piece.
    JsonArray,
    /// Binary frames of `application/vnd.amazon.eventstream`.
    AwsEventstream,
}

impl Framing {
    /// Its name in a dialect file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::Ndjson => "ndjson",
            Self::Nul => "nul",
            Self::JsonArray => "json-array",
            Self::AwsEventstream => "aws-eventstream",
        }
    }
}

/// A piece of a stream, borrowed from the bytes pushed or from what was kept of earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A whole event. `event` is empty where the stream does not name its events.
    Event { event: &'a [u8], data: &'a [u8] },
    /// A field that the framing does not know.
    Field { name: &'a [u8], value: &'a [u8] },
    /// A line that is no part of any event, but may be JSON.
    Stray { line: &'a [u8] },
    /// A comment.
    Comment,
    /// The framing itself says that the answer failed.
    Failure { code: &'a [u8], message: &'a [u8], data: &'a [u8] },
    /// An event beyond [`MAX_EVENT`]; nothing more will come.
    TooLong,
    /// Bytes that cannot be cut; nothing more will come.
    Broken(&'static str),
}

/// Takes the frames as they are cut.
pub(crate) trait Sink {
    fn frame(&mut self, frame: Frame<'_>);
}

/// The framer of one stream.
#[derive(Debug)]
pub(crate) enum Framer {
    Sse(Sse),
    Delimited(Delimited),
    JsonArray(JsonArray),
    Aws(AwsEventStream),
}

impl Framer {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Sse => Self::Sse(Sse::default()),
            Framing::Ndjson => Self::Delimited(Delimited::new(b'\n')),
            Framing::Nul => Self::Delimited(Delimited::new(0)),
            Framing::JsonArray => Self::JsonArray(JsonArray::default()),
            Framing::AwsEventstream => Self::Aws(AwsEventStream::default()),
        }
    }

    /// Takes bytes, in order, and hands on what they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: &mut impl Sink) {
        match self {
            Self::Sse(sse) => sse.push(bytes, sink),
            Self::Delimited(delimited) => delimited.push(bytes, sink),
            Self::JsonArray(array) => array.push(bytes, sink),
            Self::Aws(aws) => aws.push(bytes, sink),
        }
    }

    /// The data so far of an event whose end has not come, where a terminator may do without.
    pub(crate) fn open_event(&self) -> Option<&[u8]> {
        match self {
            Self::Sse(sse) => sse.open_event(),
            _ => None,
        }
    }

    /// What was left when the body ended: the data of an event whose end never came.
    pub(crate) fn finish(&mut self) -> Option<Rest<'_>> {
        match self {
            Self::Sse(sse) => sse.finish(),
            Self::Delimited(delimited) => delimited.finish(),
            Self::JsonArray(array) => array.finish(),
            Self::Aws(aws) => aws.finish(),
        }
    }
}

/// The last event of a body that ended without its delimiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest<'a> {
    /// The framing takes it as an event all the same.
    Event(&'a [u8]),
    /// The framing drops it; what there is of it.
    Dropped(Unfinished<'a>),
}

/// An event that the end of the body cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unfinished<'a> {
    /// Its name.
    pub(crate) event: &'a [u8],
    /// Its data so far.
    pub(crate) data: &'a [u8],
    /// A field that the framing does not know, and whose line has no end: name and value so far.
    pub(crate) field: Option<(&'a [u8], &'a [u8])>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::collect::frames;
    use super::{Framing, encode};

    const ALL: [Framing; 5] =
        [Framing::Sse, Framing::Ndjson, Framing::Nul, Framing::JsonArray, Framing::AwsEventstream];

    /// Pieces that streams of all kinds are made of, good and bad.
    fn body() -> impl Strategy<Value = Vec<u8>> {
        let texts = prop::sample::select(vec![
            "data: {\"a\":1}\n\n",
            "event: x\r\n",
            "data:\r",
            "\n",
            "\r\n",
            "\0",
            ": c\n",
            "\u{feff}",
            "id: 1\n",
            "[",
            "]",
            ",",
            "{",
            "}",
            "{\"a\":\"}\"}",
            "\"",
            "\\",
            "{\"a\":{}}\n",
            "x",
        ]);
        let piece = prop_oneof![
            texts.prop_map(|text| text.as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..20),
            ("[a-z]{0,8}", proptest::collection::vec(any::<u8>(), 0..20))
                .prop_map(|(name, payload)| encode::event(&name, &payload)),
            (0_usize..40, any::<u8>()).prop_map(|(at, byte)| {
                let mut frame = encode::event("x", b"{}");
                let at = at % frame.len();
                frame[at] = byte;
                frame
            }),
        ];
        proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same(body in body(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([body.len()]) {
                pieces.push(&body[from..cut]);
                from = cut;
            }
            for framing in ALL {
                let whole = frames(framing, [body.as_slice()]);
                prop_assert_eq!(&frames(framing, pieces.iter().copied()), &whole, "{:?}", framing);
                prop_assert_eq!(&frames(framing, body.chunks(1)), &whole, "{:?}", framing);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod collect {
    //! Collects frames as owned values, for tests.

    use super::{Frame, Framer, Framing, Rest, Sink, Unfinished};

    #[derive(Debug, Default, PartialEq, Eq)]
    pub(crate) struct Frames(pub(crate) Vec<String>);

    impl Sink for Frames {
        fn frame(&mut self, frame: Frame<'_>) {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            self.0.push(match frame {
                Frame::Event { event: b"", data } => text(data),
                Frame::Event { event, data } => format!("{}|{}", text(event), text(data)),
                Frame::Field { name, value } => format!("field {}={}", text(name), text(value)),
                Frame::Stray { line } => format!("stray {}", text(line)),
                Frame::Comment => "comment".to_owned(),
                Frame::Failure { code, message, data } => {
                    format!("failure {} {} {}", text(code), text(message), text(data))
                }
                Frame::TooLong => "too long".to_owned(),
                Frame::Broken(why) => format!("broken {why}"),
            });
        }
    }

    /// All frames of a body that came in those reads.
    pub(crate) fn frames<'a>(framing: Framing, reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let (mut framer, mut frames) = (Framer::new(framing), Frames::default());
        for read in reads {
            framer.push(read, &mut frames);
        }
        match framer.finish() {
            Some(Rest::Event(data)) => frames.0.push(String::from_utf8_lossy(data).into_owned()),
            Some(Rest::Dropped(Unfinished { event, data, field })) => {
                let text = String::from_utf8_lossy;
                let event = if event.is_empty() { String::new() } else { format!("{}|", text(event)) };
                let field = field.map(|(name, value)| format!(" {}={}", text(name), text(value)));
                frames.0.push(format!("dropped {event}{}{}", text(data), field.unwrap_or_default()));
            }
            None => {}
        }
        frames.0
    }
}
