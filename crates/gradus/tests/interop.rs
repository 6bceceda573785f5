//! Memory goes in and out in every layout, and only where the name says so is it copied.
//!
//! Every test compares addresses: that two arrays are equal would not show that they are one.

use gradus::prelude::*;

/// Counts up: `[0, 1, 2, ...]`.
fn counted(n: u32) -> Vec<f64> {
    (0..n).map(f64::from).collect()
}

/// Where the first element lies.
fn address(array: &Array) -> *const f64 {
    let memory = array.concrete().unwrap();
    f64::slice(memory.data()).unwrap()[memory.offset()..].as_ptr()
}

#[test]
fn row_s6_a_row_major_vector_goes_in_and_out_without_a_copy() {
    let values = counted(6);
    let memory = values.as_ptr();
    let a = Array::from_vec(values, [2, 3]);
    assert_eq!(a.as_slice::<f64>().unwrap().as_ptr(), memory);
    assert_eq!(Array::from(a.as_slice::<f64>().unwrap()).to_vec::<f64>().unwrap(), counted(6));
}

#[test]
fn row_s6_column_major_and_strided_vectors_go_in_without_a_copy() {
    let values = counted(6);
    let memory = values.as_ptr();
    let columns = Array::from_vec_strided(values, [2, 3], &[1, 2], 0);
    assert_eq!(address(&columns), memory);
    assert_eq!(columns.to_vec::<f64>().unwrap(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);

    let values = counted(20);
    let memory = values.as_ptr();
    let part = Array::from_vec_strided(values, [2, 2], &[-8, 3], 12);
    assert_eq!(address(&part), memory.wrapping_add(12));
    assert_eq!(part.to_vec::<f64>().unwrap(), [12.0, 15.0, 4.0, 7.0]);
}

#[test]
fn row_s6_transposed_sliced_reversed_and_broadcast_arrays_are_views() {
    let a = Array::from_vec(counted(24), [2, 3, 4]);
    let memory = address(&a);
    assert_eq!((address(&a.t()), a.t().strides()), (memory, Some(&[1, 4, 12][..])));
    let part = a.index((1..2, 1.., Index::step(.., 2)));
    assert_eq!((address(&part), part.strides()), (memory.wrapping_add(16), Some(&[12, 4, 2][..])));
    let back = a.flip(2);
    assert_eq!((address(&back), back.strides()), (memory.wrapping_add(3), Some(&[12, 4, -1][..])));
    let wide = a.broadcast_to([5, 2, 3, 4]);
    assert_eq!((address(&wide), wide.strides()), (memory, Some(&[0, 12, 4, 1][..])));
}

#[test]
fn row_s6_every_layout_is_computed_with_and_jitted() {
    let f = jit(|x: &Array| (x * x).sum_axes(0));
    let dense = Array::from([[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]);
    let columns = Array::from_vec_strided(counted(6), [2, 3], &[1, 2], 0);
    let reversed = Array::from_vec_strided(vec![5.0, 3.0, 1.0, 4.0, 2.0, 0.0], [2, 3], &[-3, -1], 5);
    for x in [&dense, &columns, &reversed] {
        assert_eq!(f(x).to_vec::<f64>().unwrap(), [1.0, 13.0, 41.0]);
        assert_eq!((x * x).sum_axes(0).to_vec::<f64>().unwrap(), [1.0, 13.0, 41.0]);
    }
    // A layout is how memory lies, not what the program is: the same one serves all three.
    assert_eq!(f.stats().traces, 1);
}

#[cfg(feature = "ndarray")]
mod with_ndarray {
    use super::*;
    use ndarray::{Array2, Array3, ArrayView2, Axis, ShapeBuilder, s};

    #[test]
    fn row_s6_ndarray_arrays_of_every_layout_go_in_and_out_without_a_copy() {
        let cube = || Array3::from_shape_vec((2, 3, 4), counted(24)).unwrap();
        let columns = Array3::from_shape_vec((2, 3, 4).f(), counted(24)).unwrap();
        let mut reversed = cube();
        reversed.invert_axis(Axis(1));
        for theirs in [
            cube(),
            columns,
            reversed,
            cube().permuted_axes([2, 0, 1]),
            cube().slice_move(s![.., 1.., ..;2]),
            cube().slice_move(s![..;-1, ..;2, ..;-3]),
        ] {
            let (memory, strides, want) = (theirs.as_ptr(), theirs.strides().to_vec(), theirs.clone().into_dyn());
            let ours = Array::from(theirs);
            assert_eq!(address(&ours), memory);
            assert_eq!(ours.strides(), Some(&strides[..]));
            let view = ours.view_ndarray::<f64>().unwrap();
            assert_eq!((view.as_ptr(), view.strides()), (memory, &strides[..]));
            assert_eq!(view, want);
            assert_eq!(ours.to_vec::<f64>().unwrap(), want.iter().copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn row_s6_views_of_ours_are_ndarray_views() {
        let a = Array::from_vec(counted(12), [3, 4]);
        let memory = address(&a);
        let there = ArrayView2::from_shape((3, 4), a.as_slice::<f64>().unwrap()).unwrap();
        for (ours, theirs) in [
            (a.t(), there.t().into_dyn()),
            (a.flip(0), there.slice(s![..;-1, ..]).into_dyn()),
            (a.flip(()), there.slice(s![..;-1, ..;-1]).into_dyn()),
            (a.broadcast_to([2, 3, 4]), there.broadcast((2, 3, 4)).unwrap().into_dyn()),
        ] {
            let view = ours.view_ndarray::<f64>().unwrap();
            assert_eq!(view, theirs);
            assert_eq!((view.as_ptr(), view.strides()), (theirs.as_ptr(), theirs.strides()));
        }
        assert_eq!(a.view_ndarray::<f64>().unwrap().as_ptr(), memory);
    }

    #[test]
    fn references_and_views_are_copied() {
        let theirs = Array2::from_shape_vec((2, 3).f(), counted(6)).unwrap();
        let a = Array::from(&theirs);
        assert_ne!(address(&a), theirs.as_ptr());
        assert_eq!(a.as_slice::<f64>().unwrap(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
        let b = Array::from(theirs.slice(s![.., ..;-2]));
        assert_eq!(b.as_slice::<f64>().unwrap(), [4.0, 0.0, 5.0, 1.0]);
        assert_eq!(a.to_ndarray::<f64>().unwrap(), theirs.into_dyn());
    }

    #[test]
    fn a_traced_array_has_no_memory_to_lend() {
        let f = jit(|x: &Array| match x.view_ndarray::<f64>() {
            Ok(view) => Array::from(view),
            Err(error) => Array::from(error),
        });
        assert_eq!(f(&Array::from([1.0])).to_vec::<f64>().unwrap_err().kind(), ErrorKind::NotConcrete);
    }
}

#[cfg(feature = "nalgebra")]
mod with_nalgebra {
    use super::*;
    use nalgebra::{DMatrix, DVector, Matrix2x3};

    #[test]
    fn row_s6_nalgebra_matrices_go_in_and_out_without_a_copy() {
        let theirs = DMatrix::from_vec(2, 3, counted(6));
        let (memory, want) = (theirs.as_ptr(), theirs.clone());
        let ours = Array::from(theirs);
        assert_eq!((address(&ours), ours.strides()), (memory, Some(&[1, 2][..])));
        let view = ours.view_dmatrix::<f64>().unwrap();
        assert_eq!((view.as_ptr(), view.strides()), (memory, (1, 2)));
        assert_eq!(view, want);
        assert_eq!(ours.to_vec::<f64>().unwrap(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);

        let theirs = DVector::from_vec(counted(3));
        let memory = theirs.as_ptr();
        let ours = Array::from(theirs);
        assert_eq!(ours.as_slice::<f64>().unwrap().as_ptr(), memory);
        assert_eq!(ours.view_dvector::<f64>().unwrap().as_ptr(), memory);
    }

    #[test]
    fn row_s6_views_of_ours_are_nalgebra_views() {
        let a = Array::from_vec(counted(24), [4, 6]);
        let theirs = DMatrix::from_row_slice(4, 6, a.as_slice::<f64>().unwrap()).transpose();
        // Row-major memory is column-major memory of the transpose; parts of it have gaps between the columns.
        for (ours, theirs) in [
            (a.t(), theirs.clone()),
            (a.index((1..3, 2..)).t(), theirs.view((2, 1), (4, 2)).into_owned()),
            (a.index((Index::step(.., 2), ..)).t(), theirs.columns_with_step(0, 2, 1).into_owned()),
            (a.index((2..3, Index::step(.., 3))), theirs.view_with_steps((0, 2), (2, 1), (2, 0)).transpose()),
        ] {
            let view = ours.view_dmatrix::<f64>().unwrap();
            assert_eq!(view.as_ptr(), address(&ours));
            assert_eq!(view, theirs);
            assert_eq!(view.tr_mul(&view), theirs.transpose() * &theirs);
            assert_eq!(ours.to_dmatrix::<f64>().unwrap(), theirs);
        }
    }

    #[test]
    fn references_and_views_are_copied() {
        let theirs = Matrix2x3::new(0.0, 1.0, 2.0, 3.0, 4.0, 5.0);
        assert_eq!(Array::from(&theirs).as_slice::<f64>().unwrap(), counted(6));
        assert_eq!(Array::from(theirs.column(1)).as_slice::<f64>().unwrap(), [1.0, 4.0]);
    }

    #[test]
    fn what_nalgebra_cannot_show_says_how_to_copy() {
        let a = Array::from_vec(counted(6), [2, 3]);
        for (a, way_out) in [
            (a.clone(), "lend the transpose, `x.t().view_dmatrix()`, or copy with `to_dmatrix`"),
            (a.flip(1), "copy with `to_dmatrix`"),
        ] {
            let error = a.view_dmatrix::<f64>().unwrap_err();
            assert_eq!((error.kind(), error.way_out()), (ErrorKind::Value, Some(way_out)));
            assert!(Array::from(a.to_dmatrix::<f64>().unwrap()).is_identical(&a));
        }
    }
}
