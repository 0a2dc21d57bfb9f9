//! Faults that a test asks for: operations that fail, commits that stay pending, answers that get lost.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::Answer;
use crate::{ReadBodies, StoreError, Transaction};

/// What a store is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`crate::Store::open`].
    Open,
    /// [`crate::Store::commit`].
    Commit,
    /// [`crate::Store::read_bodies`].
    Read,
}

#[derive(Debug)]
pub(super) struct Faults<B> {
    pub(super) failures: VecDeque<(Operation, StoreError)>,
    pub(super) held: bool,
    pub(super) lose_answer: bool,
    pub(super) pending: VecDeque<(Transaction<B>, Rc<Slot<B>>)>,
}

impl<B> Default for Faults<B> {
    fn default() -> Self {
        Self {
            failures: VecDeque::new(),
            held: false,
            lose_answer: false,
            pending: VecDeque::new(),
        }
    }
}

impl<B> Faults<B> {
    pub(super) fn take(&mut self, operation: Operation) -> Option<StoreError> {
        let at = self
            .failures
            .iter()
            .position(|(kind, _)| *kind == operation)?;
        self.failures.remove(at).map(|(_, error)| error)
    }
}

/// Where a pending commit finds its answer.
#[derive(Debug)]
pub(super) struct Slot<B> {
    state: RefCell<SlotState<B>>,
}

#[derive(Debug)]
struct SlotState<B> {
    answer: Option<Result<ReadBodies<B>, StoreError>>,
    waker: Option<Waker>,
}

impl<B> Slot<B> {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::new(SlotState {
                answer: None,
                waker: None,
            }),
        })
    }

    pub(super) fn answer(&self, answer: Result<ReadBodies<B>, StoreError>) {
        let waker = {
            let mut state = self.state.borrow_mut();
            state.answer = Some(answer);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn poll(&self, context: &Context<'_>) -> Answer<B> {
        let mut state = self.state.borrow_mut();
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
