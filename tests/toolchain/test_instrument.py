"""Which kernels a program registers: the stub file of nvcc 13.0, shortened, and forms that we do not know."""

from __future__ import annotations

import pytest

from cccopt.toolchain.instrument import with_counted_entries, with_header

HEAD = '#include "crt/host_runtime.h"\n'
TAIL = " __cudaRegisterVariable(__T4, __shadow_var(g,::g), 0, 40UL, 0, 0); }\n"


def stub(*entries: str) -> str:
    return f"{HEAD}static void __nv_cudaEntityRegisterCallback( void **__T4) {{  {' '.join(entries)}{TAIL}"


PLAIN = "__cudaRegisterEntry(__T4, ((void ( *)(int *, int))plain_c), plain_c, (-1));"
TEMPLATE = "__cudaRegisterEntry(__T4, ((void ( *)(float *))tmpl<(int)3, (-1)> ), _Z4tmplIiLin1EEvPT_, (-1));"
BOUNDED = "__cudaRegisterEntry(__T4, ((void ( *)(const struct Rmat *, int *))bounded), bounded, 256);"
HIDDEN = (
    "__cudaRegisterEntry(__T4, ((void ( *)(int *))stat), __nv_static_25__92da_4_a_cu_bf__Z4statPi, (-1));"
)


def test_the_environment_chooses_between_a_kernel_and_its_copy() -> None:
    made = with_counted_entries(stub(PLAIN), {"plain_c"})
    copy = PLAIN.replace(" plain_c,", " plain_c__ccc_counted,")
    assert made is not None
    assert f"if (ccc_profile_counts()) {{ {copy} }} else {{ {PLAIN} }}{TAIL}" in made
    assert made.index("static bool ccc_profile_counts") < made.index("static void __nv_cudaEntity")
    assert made.startswith(HEAD)


def test_only_counted_kernels_are_chosen() -> None:
    made = with_counted_entries(stub(PLAIN, TEMPLATE, HIDDEN), {"_Z4tmplIiLin1EEvPT_"})
    assert made is not None
    assert made.count("__ccc_counted") == 1
    assert "_Z4tmplIiLin1EEvPT___ccc_counted, (-1)" in made
    assert f"{{  {PLAIN} if (ccc_profile_counts())" in made
    assert f"}} {HIDDEN}{TAIL}" in made


def test_names_with_a_modules_number_are_names() -> None:
    name = "__nv_static_25__92da_4_a_cu_bf__Z4statPi"
    made = with_counted_entries(stub(HIDDEN), {name})
    assert made is not None
    assert f"{name}__ccc_counted, (-1)" in made


def test_launch_bounds_are_no_part_of_a_name() -> None:
    made = with_counted_entries(stub(BOUNDED, PLAIN), {"bounded"})
    assert made is not None
    assert "((void ( *)(const struct Rmat *, int *))bounded), bounded__ccc_counted, 256); } else {" in made


def test_launch_bounds_may_be_any_expression() -> None:
    entry = (
        "__cudaRegisterEntry(__T4, ((void ( *)(_ZN3cub6choiceE *, int))cub::f<(int)3> ), _Z1fv,"
        " ( ::cub::Policy<(int)128, name, (int)8> ::BLOCK_THREADS));"
    )
    made = with_counted_entries(stub(entry, PLAIN), {"_Z1fv"})
    assert made is not None
    assert (
        f"if (ccc_profile_counts()) {{ {entry.replace('_Z1fv', '_Z1fv__ccc_counted')} }} else {{ {entry} }}"
        in made
    )
    assert made.count("__ccc_counted") == 1


def test_without_counted_kernels_nothing_is_changed() -> None:
    assert with_counted_entries(stub(PLAIN), ()) == stub(PLAIN)
    assert with_counted_entries("whatever", ()) == "whatever"


@pytest.mark.parametrize(
    "text",
    [
        "int main() {}",
        stub(PLAIN).replace("__nv_cudaEntityRegisterCallback", "register_all"),
        stub(PLAIN).replace("(-1)", "limit"),
        stub(PLAIN, TEMPLATE).replace("_Z4tmplIiLin1EEvPT_", '"_Z4tmplIiLin1EEvPT_"'),
    ],
)
def test_another_form_is_not_guessed_at(text: str) -> None:
    assert with_counted_entries(text, {"plain_c"}) is None


def test_the_header_stands_behind_the_text_and_needs_no_preprocessor() -> None:
    made = with_header("int x;", 'a "file".cu')
    assert made.startswith('int x;\n# 1 "ccc_profile.h" 1 3\n')
    assert "\n#" not in made.partition(" 3\n")[2]
    assert r'ccc_profile_file[] = "a\040\042file\042\056cu";' in made
    assert "__device__" not in made  # a macro, gone by then
