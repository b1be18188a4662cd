//! Running counts of tokens: differenced to tokens per event, and added up only where each choice has its own.

use super::reader::{MAX_CHOICES, Output};

/// The counts of one answer.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// An output event did not tell a count, so there are no running ones.
    broken: bool,
    /// The largest count at an output event so far.
    counted: u64,
    /// Each choice has its own count, as seen by one that did not grow when another choice went on.
    per_choice: bool,
    last_choice: usize,
    /// The count at the last output event of each choice.
    at_output: Vec<u64>,
    /// The last count of each choice.
    latest: Vec<u64>,
    /// The last event with a finish.
    finish_event: u32,
    /// Counts that came with no choice beside them.
    alone: Counts,
    /// Those that came with a choice.
    with_choice: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    n: u32,
    sum: u64,
    last: u64,
    /// How many came with a finish, or as the very next event.
    at_finish: u32,
}

impl Running {
    /// Tokens of an output event: the difference of running counts, as long as every output event told one.
    pub(super) fn tokens(&mut self, running: Option<u64>, choice: usize) -> u32 {
        let (false, Some(count)) = (self.broken, running) else {
            self.broken = true;
            return 0;
        };
        let choice = choice.min(MAX_CHOICES - 1);
        self.per_choice |= choice != self.last_choice && count <= self.counted;
        self.last_choice = choice;
        let own = place(&mut self.at_output, choice);
        let before = if self.per_choice { *own } else { self.counted };
        *own = count;
        self.counted = self.counted.max(count);
        u32::try_from(count.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// Takes note of what an event told, once its tokens are known. `event` is its number.
    pub(super) fn note(&mut self, output: &Output, event: u32) {
        if let Some(count) = output.tokens {
            let counts = match output.choice {
                Some(choice) => {
                    *place(&mut self.latest, choice.min(MAX_CHOICES - 1)) = count;
                    &mut self.with_choice
                }
                None => &mut self.alone,
            };
            counts.n += 1;
            counts.sum = counts.sum.saturating_add(count);
            counts.last = count;
            let at_finish = output.finished || (self.finish_event > 0 && self.finish_event + 1 == event);
            counts.at_finish += u32::from(at_finish);
        }
        if output.finished {
            self.finish_event = event;
        }
    }

    /// The tokens of all `choices` together, where the server tells one count for each of them: with or right behind
    /// each finish, or running. `events` is the number of events with output.
    pub(super) fn sum(&self, choices: u32, events: usize) -> Option<u64> {
        let one_each = |counts: &Counts| counts.n == choices && counts.at_finish == choices;
        if choices < 2 {
            None
        } else if one_each(&self.alone) {
            Some(self.alone.sum)
        } else if self.alone.n == 0 && one_each(&self.with_choice) {
            // A last count that is enough for all that came may be one for all.
            Some(self.with_choice.sum).filter(|_| self.with_choice.last < events as u64)
        } else {
            (self.alone.n == 0 && self.per_choice).then(|| self.latest.iter().sum())
        }
    }
}

fn place(counts: &mut Vec<u64>, choice: usize) -> &mut u64 {
    if counts.len() <= choice {
        counts.resize(choice + 1, 0);
    }
    &mut counts[choice]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens of output events that come as choice and running count.
    fn tokens(events: &[(usize, u64)]) -> Vec<u32> {
        let mut running = Running::default();
        events.iter().map(|(choice, count)| running.tokens(Some(*count), *choice)).collect()
    }

    #[test]
    fn one_count_for_all_choices_or_one_each() {
        assert_eq!(tokens(&[(0, 1), (0, 4), (0, 4), (0, 5)]), [1, 3, 0, 1]);
        assert_eq!(tokens(&[(0, 1), (1, 2), (0, 3), (1, 5)]), [1, 1, 1, 2], "one for all");
        assert_eq!(tokens(&[(0, 1), (1, 1), (0, 2), (1, 4), (0, 3)]), [1, 1, 1, 3, 1], "one each");
        assert_eq!(tokens(&[(0, 2), (0, 3), (1, 1), (1, 2), (0, 9)]), [2, 1, 1, 1, 6], "one each");
        assert_eq!(tokens(&[(1, 3), (0, 2), (1, 4)]), [3, 2, 1], "one each");
    }

    fn sum(choices: u32, events: &[(Option<usize>, Option<u64>, bool)]) -> Option<u64> {
        let mut running = Running::default();
        for (event, (choice, tokens, finished)) in (1..).zip(events) {
            let mut output = Output::default();
            (output.tokens, output.choice, output.finished) = (*tokens, *choice, *finished);
            running.note(&output, event);
        }
        running.sum(choices, 9)
    }

    #[test]
    fn counts_are_added_up_only_where_each_choice_has_its_own() {
        let text = |choice| (Some(choice), None, false);
        let finish = |choice| (Some(choice), None, true);
        let usage = |count| (None, Some(count), false);
        assert_eq!(sum(2, &[text(1), finish(1), usage(24), text(0), finish(0), usage(20)]), Some(44));
        assert_eq!(sum(2, &[finish(1), finish(0), usage(48)]), None, "one for all");
        assert_eq!(sum(1, &[finish(0), usage(8), usage(8)]), None, "the same one twice");
        assert_eq!(sum(2, &[finish(0), finish(1), usage(8), usage(8)]), None, "the same one twice");
        let with_finish = |choice, count| (Some(choice), Some(count), true);
        assert_eq!(sum(2, &[text(1), with_finish(1, 5), with_finish(0, 6)]), Some(11));
        assert_eq!(sum(2, &[text(1), with_finish(1, 5), with_finish(0, 11)]), None, "one for all");
    }
}
