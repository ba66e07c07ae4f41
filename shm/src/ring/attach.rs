//! Attaches the ends of links in a process.

use super::link::{Link, LinkSpec};
use super::{spsc, spsc_mux};
use crate::attached::Attached;
use crate::memory::{AtomicWords, HeaderError, ReadOnlyWords, RegionError};

impl Attached<'_> {
    /// Attaches the sending end of the producer with this index to a queue of several producers, of
    /// the technique (queue algorithm) `T`.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn producer<T: Link>(&mut self, spec: &LinkSpec, index: usize) -> Result<T::Producer, RegionError> {
        T::producer(spec, index, self)
    }

    /// Attaches the receiving end of a queue of several producers, of the technique (queue
    /// algorithm) `T`.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn consumer<T: Link>(&mut self, spec: &LinkSpec) -> Result<T::Consumer, RegionError> {
        T::consumer(spec, self)
    }

    /// Attaches the sending end of a link with one producer, which is an SPSC ring between two
    /// agents.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn sender(&mut self, what: &str) -> Result<spsc::Producer, RegionError> {
        let (tail, head) = self.producer_parts(what)?;
        named(what, spsc::Producer::attach_parts(&tail, &head))
    }

    /// Attaches the receiving end of a link with one producer, which is an SPSC ring between two
    /// agents.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn receiver(&mut self, what: &str) -> Result<spsc::Consumer, RegionError> {
        let (tail, head) = self.consumer_parts(what)?;
        named(what, spsc::Consumer::attach_parts(&tail, &head))
    }

    /// Attaches a receiving end of a link with one producer in place of a crashed one. See
    /// [`spsc::Consumer::resume_parts`].
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn resume_receiver(&mut self, what: &str) -> Result<spsc::Consumer, RegionError> {
        let (tail, head) = self.consumer_parts(what)?;
        named(what, spsc::Consumer::resume_parts(&tail, &head))
    }

    /// Attaches a sending end of a link with one producer in place of a crashed one. See
    /// [`spsc::Producer::resume_parts`].
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn resume_sender(&mut self, what: &str) -> Result<spsc::Producer, RegionError> {
        let (tail, head) = self.producer_parts(what)?;
        named(what, spsc::Producer::resume_parts(&tail, &head))
    }

    /// Attaches a sending end in place of a crashed one that was trusted as this process is. See
    /// [`spsc::Producer::resume_own_parts`].
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn resume_own_sender(&mut self, what: &str) -> Result<spsc::Producer, RegionError> {
        let (tail, head) = self.producer_parts(what)?;
        named(what, spsc::Producer::resume_own_parts(&tail, &head))
    }

    fn producer_parts(&mut self, what: &str) -> Result<(AtomicWords, ReadOnlyWords), RegionError> {
        let head = self.view(&spsc_mux::head_name(what), spsc::HEAD_KIND)?;
        Ok((self.region(what, spsc::KIND)?.words(), head))
    }

    fn consumer_parts(&mut self, what: &str) -> Result<(ReadOnlyWords, AtomicWords), RegionError> {
        let tail = self.view(what, spsc::KIND)?;
        Ok((tail, self.region(&spsc_mux::head_name(what), spsc::HEAD_KIND)?.words()))
    }
}

fn named<T>(what: &str, attached: Result<T, HeaderError>) -> Result<T, RegionError> {
    attached.map_err(|source| RegionError::Header { name: what.into(), source })
}
