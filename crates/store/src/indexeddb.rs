//! The store in IndexedDB.
