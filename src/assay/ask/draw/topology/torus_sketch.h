#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "assay/ask/draw/sketch.h"
#include "assay/hardware/cluster.h"

namespace assay::draw {

/// How one slice of a torus is drawn: every chip on a plane, every chip in space, or whole cubes in space.
enum class TorusView { grid, stack, blocks };

/// The view that keeps a slice readable: chips are drawn individually up to about 4x4x8.
TorusView torus_view(const hardware::Torus& torus);

/// A drawn slice, and the place at the top of it where a network would be plugged in.
struct SliceSketch {
  Sketch sketch;
  PlotPoint port;
};

/// One slice with its axes labelled. Long axes are drawn with a gap, so that no slice takes more than a few hundred
/// shapes. Links have the colour of their axis, wraparound links run outside, and hosts are tinted groups of chips.
SliceSketch sketch_torus(const hardware::Cluster& cluster);

/// The same slice as a plain outline, for use next to one that is drawn in full.
SliceSketch sketch_slice_outline(const hardware::Cluster& cluster, double size);

/// The sizes of one host along the axes, turned so that hosts tile the slice; empty if they do not.
hardware::Shape host_tile(const hardware::Cluster& cluster);

/// Chips along each side of the cubes in a `blocks` view; 1 if the slice is not made of cubes.
std::int64_t block_side(const hardware::Cluster& cluster);

/// The parts of a sketch of one kind, in files of their own.
SliceSketch sketch_torus_grid(const hardware::Cluster& cluster);
SliceSketch sketch_torus_stack(const hardware::Cluster& cluster);
SliceSketch sketch_torus_blocks(const hardware::Cluster& cluster);
/// The inside of one cube: `side` chips along each axis, `pitch` apart, without labels.
Sketch sketch_cube_inside(const hardware::Cluster& cluster, std::int64_t side, double pitch);

/// The colour of an axis: its links and its label.
ColourRole axis_colour(std::size_t axis);
/// "X: 16 chips, ring", "45 GB/s one way per link", and how it is twisted.
std::vector<std::string> axis_text(const hardware::Cluster& cluster, std::size_t axis);

/// By how much the wraparound of an axis of a twisted torus shifts along which others, "Z by 4"; empty where it does
/// not.
std::string twist_text(const hardware::Torus& torus, std::size_t axis);
/// Adds that text from `at.y` down, with a sample of the axis' colour where it is anchored.
void add_axis_name(Sketch& sketch, PlotPoint at, const hardware::Cluster& cluster, std::size_t axis, Anchor anchor);

Paint link_paint(std::size_t axis);
Paint wrap_paint(std::size_t axis);
Paint host_paint();
Paint chip_paint(double opacity = 1.0);

}  // namespace assay::draw
