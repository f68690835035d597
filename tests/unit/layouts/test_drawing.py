"""Layouts drawn: what text and SVG show, valid XML, equal bytes, and bounded sizes."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given

from tests.unit.layouts.map_cases import Case, cases, points_of
from tilenest.errors import ShapeError
from tilenest.layouts import (
    Expressions,
    Identity,
    IndexSet,
    LayoutCorr,
    MixedRadix,
    Space,
    cute,
    parse_index_set,
    parse_layout,
    row_major,
    strided,
    tirx,
)
from tilenest.layouts.drawing import MOST_COLUMNS, MOST_ROWS, as_svg, as_text

SVG = "{http://www.w3.org/2000/svg}"
TILE = tirx.to_correspondence(
    tirx.tile_layout(
        [(8, 4, "lane"), (2, 1, "warp"), (4, 1, "lane"), (2, 1, "reg")],
        [(2, 4, "warp")],
        {"warp": 5},
    ),
    (8, 16),
)


def words(svg: str) -> list[str]:
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def fills(svg: str) -> list[str]:
    return [box.attrib["fill"] for box in ET.fromstring(svg).iter(f"{SVG}rect")]


def test_a_map_is_a_grid_of_offsets() -> None:
    column_major = strided(Space.box(2, 3), (1, 10))
    assert as_text(column_major, "columns first") == (
        "columns first\n   0   1   2\n0  0  10  20\n1  1  11  21\n"
    )
    svg = as_svg(column_major, "columns first")
    assert words(svg) == [
        *("columns first", "0", "1", "2"),
        *("0", "0", "10", "20"),
        *("1", "1", "11", "21"),
    ]
    assert set(fills(svg)) == {"#ffffff"}


def test_a_distribution_shows_every_holder() -> None:
    lines = as_text(TILE).splitlines()
    assert len(lines) == 1 + 8 + 1
    assert lines[4].split() == ["3", *("|".join(cell) for cell in expected_row(3))]
    assert lines[-1] == "cells say lane,warp,reg"
    svg = as_svg(TILE, colour_by="lane")
    cells = [f"{one}|{other}" for row in range(8) for one, other in expected_row(row)]
    assert [word for word in words(svg) if "|" in word] == cells
    colours = fills(svg)
    lanes = [row * 4 + column // 2 % 4 for row in range(8) for column in range(16)]
    by_lane = dict(zip(lanes, colours, strict=True))
    assert colours == [by_lane[lane] for lane in lanes]
    assert len(set(by_lane.values())) == 32
    assert words(svg)[-1] == "colours say lane"


def expected_row(row: int) -> list[tuple[str, str]]:
    found = []
    for column in range(16):
        lane, warp, register = row * 4 + column // 2 % 4, 5 + column // 8, column % 2
        found.append((f"{lane},{warp},{register}", f"{lane},{warp + 4},{register}"))
    return found


def test_colours_are_banks() -> None:
    swizzled = cute.to_map(cute.parse("Sw<3,0,3> o (8,8):(8,1)"))
    for layout, n_colours in ((swizzled, 8), (strided(Space.box(8, 8), (8, 1)), 1)):
        svg = as_svg(layout, banks=8)
        columns = [fills(svg)[column::8] for column in range(8)]
        assert all(len(set(column)) == n_colours for column in columns)
        assert words(svg)[-1] == "colours say y0 modulo 8"


@given(cases())
def test_every_drawing_is_the_map_and_valid(case: Case) -> None:
    svg, text = as_svg(case.map, 'any <map> & "more"\x00'), as_text(case.map)
    assert (svg, text) == (as_svg(case.map, 'any <map> & "more"\x00'), as_text(case.map))
    assert words(svg)[0] == 'any <map> & "more" '
    assert words(svg) == expected_words(case, 'any <map> & "more" ')
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert " ".join(" ".join(lines).split()) == " ".join(
        " ".join(expected_words(case, "")).replace(colours_note(case), "").split()
    )


def expected_words(case: Case, title: str) -> list[str]:
    space = case.map.domain
    last = range(int(space.extents[-1])) if space.rank else None
    found = [title, *(map(str, last) if last is not None else [""])]
    for row in points_of(Space(space.axes[:-1])) if last is None or len(last) else []:
        found.append(",".join(map(str, row)))
        for point in [row] if last is None else [(*row, column) for column in last]:
            value = case.table.get(point)
            found.append("-" if value is None else ",".join(map(str, value)))
    names = [axis.name for axis in case.map.codomain.axes]
    found += [f"cells say {','.join(names)}"] * (len(names) > 1)
    found += [colours_note(case)] * (len(names) > 1)
    return found + ["the layout has no point"] * (not points_of(space))


def colours_note(case: Case) -> str:
    axes = case.map.codomain.axes
    return f"colours say {axes[0].name}" if len(axes) > 1 else "no colours"


def test_large_layouts_are_cut_with_a_note() -> None:
    layout = row_major(Space.box(1 << 20, 1 << 20))
    for drawn in (as_text(layout), as_svg(layout)):
        assert f"rows {MOST_ROWS} to 1048575 are not shown" in drawn
        assert f"columns {MOST_COLUMNS} to 1048575 are not shown" in drawn
        assert len(drawn) < 1_000_000
    assert len(fills(as_svg(layout))) == MOST_ROWS * MOST_COLUMNS
    exact = row_major(Space.box(MOST_ROWS, MOST_COLUMNS))
    assert "not shown" not in as_text(exact)


def test_many_holders_are_cut() -> None:
    occurrences, points = Space.box(2, 9), Space.box(2)
    corr = LayoutCorr(
        MixedRadix(occurrences, points, ((1, 0),)),
        strided(occurrences, (100, 1)),
    )
    assert as_text(corr).splitlines()[1].split() == ["0|1|2|3|+5", "100|101|102|103|+5"]


def test_holes_and_empty_layouts_are_shown() -> None:
    plain = row_major(Space.box(2, 2))
    diagonal = plain.restrict(parse_index_set("[x0=2, x1=2]{d0 - d1 == 0}"))
    assert as_text(diagonal) == "   0  1\n0  0  -\n1  -  3\n"
    assert as_text(Identity(Space.box(0))) == "\nthe layout has no point\n"
    assert as_text(parse_layout("identity([])")) == "\n\n"
    for layout in (Identity(Space.box(0, 3)), Identity(Space.box(3, 0)), Identity(Space())):
        assert words(as_svg(layout)) is not None
        assert as_text(layout)


def test_more_axes_go_down() -> None:
    lines = as_text(row_major(Space.box(2, 2, 3))).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["0,0", "0,1", "1,0", "1,1"]
    assert lines[3].split()[1:] == ["6", "7", "8"]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ShapeError, match="run-time numbers"):
        as_text(Identity(Space.box("n")))
    one = IndexSet(Space.box(2), (), ("k",))
    with pytest.raises(ShapeError, match="run-time numbers"):
        as_svg(Identity(Space.box(2)).restrict(one))
    with pytest.raises(ShapeError, match="no axis 'thread'"):
        as_svg(TILE, colour_by="thread")
    with pytest.raises(ShapeError, match="0 banks"):
        as_svg(TILE, banks=0)
    many = Space.box(1 << 20)
    with pytest.raises(ShapeError, match="too many occurrences"):
        as_text(LayoutCorr(Identity(many), Expressions(many, Space(), ())))
