//! Whether the warm-up shows that there is no point in a test.

use ttft_model::{ErrorClass, Failure, Record};

/// Failures that the next thousand requests would meet again.
const HOPELESS: [ErrorClass; 5] = [
    ErrorClass::Dns,
    ErrorClass::ConnectRefused,
    ErrorClass::Tls,
    ErrorClass::HttpAuth,
    ErrorClass::HttpNotFound,
];

/// The warm-up requests so far.
#[derive(Debug, Default)]
pub(super) struct WarmUp {
    sent: u64,
    hopeless: u64,
    first: Option<Failure>,
}

impl WarmUp {
    /// Looks at requests that have ended.
    pub(super) fn push(&mut self, records: &[Record]) {
        for record in records.iter().filter(|record| record.warmup) {
            self.sent += 1;
            if let Some(failure) = record.failure() {
                self.hopeless += u64::from(HOPELESS.contains(&failure.class));
                self.first.get_or_insert_with(|| failure.clone());
            }
        }
    }

    /// Once the warm-up is over: why nothing will ever be measured, if that is so. Tells it once.
    pub(super) fn take_hopeless(&mut self) -> Option<String> {
        let failure = self.first.take().filter(|_| self.hopeless == self.sent)?;
        let (class, remedy) = (failure.class, failure.class.remedy());
        Some(format!("every warm-up request failed with {class}: {}; {remedy}", failure.message))
    }
}
