//! The trees that come with the language: arrays, tuples, collections, options, and results.
//!
//! `visit` and `map` of a type stand together here, since they must go over the leaves in the same order.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::sync::Arc;

use gradus_core::{Array, Error};

use super::{Mapper, Segment, Tree, Visitor};

impl Tree for Array {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.array(self);
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        mapper.array(self)
    }

    fn of_error(error: &Error) -> Option<Self> {
        Some(Array::from(error.clone()))
    }
}

impl Tree for () {
    fn visit(&self, _: &mut dyn Visitor) {}

    fn map(&self, _: &mut dyn Mapper) -> Self {}

    fn of_error(_: &Error) -> Option<Self> {
        Some(())
    }
}

impl<T: ?Sized + Send + Sync + 'static> Tree for PhantomData<T> {
    fn visit(&self, _: &mut dyn Visitor) {}

    fn map(&self, _: &mut dyn Mapper) -> Self {
        PhantomData
    }

    fn of_error(_: &Error) -> Option<Self> {
        Some(PhantomData)
    }
}

macro_rules! tuples {
    ($(($($item:ident $index:tt)+))*) => {$(
        impl<$($item: Tree),+> Tree for ($($item,)+) {
            fn visit(&self, visitor: &mut dyn Visitor) {
                $(visit_at(visitor, Segment::Field(stringify!($index)), &self.$index);)+
            }

            fn map(&self, mapper: &mut dyn Mapper) -> Self {
                ($(self.$index.map(mapper),)+)
            }

            fn of_error(error: &Error) -> Option<Self> {
                Some(($($item::of_error(error)?,)+))
            }
        }
    )*};
}
tuples! {
    (A 0)
    (A 0 B 1)
    (A 0 B 1 C 2)
    (A 0 B 1 C 2 D 3)
    (A 0 B 1 C 2 D 3 E 4)
    (A 0 B 1 C 2 D 3 E 4 F 5)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6)
    (A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
}

fn visit_at(visitor: &mut dyn Visitor, segment: Segment<'_>, tree: &impl Tree) {
    visitor.enter(segment);
    tree.visit(visitor);
    visitor.leave();
}

impl<T: Tree> Tree for Vec<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.structure("len", self.len());
        for (index, item) in self.iter().enumerate() {
            visit_at(visitor, Segment::Index(index), item);
        }
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        self.iter().map(|item| item.map(mapper)).collect()
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn visit(&self, visitor: &mut dyn Visitor) {
        for (index, item) in self.iter().enumerate() {
            visit_at(visitor, Segment::Index(index), item);
        }
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        self.each_ref().map(|item| item.map(mapper))
    }

    fn of_error(error: &Error) -> Option<Self> {
        let items: Option<Vec<T>> = (0..N).map(|_| T::of_error(error)).collect();
        items?.try_into().ok()
    }
}

impl<T: Tree> Tree for Option<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.structure("some", usize::from(self.is_some()));
        if let Some(tree) = self {
            tree.visit(visitor);
        }
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        self.as_ref().map(|tree| tree.map(mapper))
    }
}

impl<T: Tree> Tree for Box<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        (**self).visit(visitor);
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        Box::new((**self).map(mapper))
    }

    fn of_error(error: &Error) -> Option<Self> {
        T::of_error(error).map(Box::new)
    }
}

/// What is shared before [`map`](Tree::map) is shared no more after it: each place gets its own value.
impl<T: Tree> Tree for Arc<T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        (**self).visit(visitor);
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        Arc::new((**self).map(mapper))
    }

    fn of_error(error: &Error) -> Option<Self> {
        T::of_error(error).map(Arc::new)
    }
}

impl<T: Tree> Tree for BTreeMap<String, T> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visit_entries(visitor, self.iter());
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        self.iter().map(|(key, tree)| (key.clone(), tree.map(mapper))).collect()
    }
}

/// Goes in the order of the keys, as a `BTreeMap` does: the order of the hasher differs from run to run.
impl<T: Tree, S: BuildHasher + Clone + Send + Sync + 'static> Tree for HashMap<String, T, S> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visit_entries(visitor, sorted(self).into_iter());
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        let mut mapped = HashMap::with_capacity_and_hasher(self.len(), self.hasher().clone());
        mapped.extend(sorted(self).into_iter().map(|(key, tree)| (key.clone(), tree.map(mapper))));
        mapped
    }
}

fn sorted<T, S>(map: &HashMap<String, T, S>) -> Vec<(&String, &T)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

fn visit_entries<'a, T: Tree>(visitor: &mut dyn Visitor, entries: impl ExactSizeIterator<Item = (&'a String, &'a T)>) {
    visitor.structure("len", entries.len());
    for (rank, (key, tree)) in entries.enumerate() {
        visitor.structure(&format!("key {key:?}"), rank);
        visit_at(visitor, Segment::Key(key), tree);
    }
}

/// A function may end in `?`. An error has no leaves; its text is frozen, so that one error is not taken for another.
impl<T: Tree> Tree for Result<T, Error> {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.structure("ok", usize::from(self.is_ok()));
        match self {
            Ok(tree) => tree.visit(visitor),
            Err(error) => visitor.frozen(&error.to_string()),
        }
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        match self {
            Ok(tree) => Ok(tree.map(mapper)),
            Err(error) => Err(error.clone()),
        }
    }
}
