#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The checks find exactly the expected errors in small synthetic trees."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
LAYERS = "base:\nops: base\ncomm: base\ncli: base ops comm\n"


def run(script, files):
    """Returns (exit code, output) of `script` for a tree of `files`."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {"docs/layers.txt": LAYERS, **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        done = subprocess.run([sys.executable, ROOT / "scripts" / script, root],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class Layers(unittest.TestCase):
    def accepts(self, files):
        self.assertEqual(run("check_layers.py", files), (0, ""))

    def refuses(self, files, message):
        code, output = run("check_layers.py", files)
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_a_module_may_include_what_stands_right_of_its_colon(self):
        self.accepts({"src/ops/a.cpp": '#include <hpcai/base/error.hpp>\n#include <hpcai/ops/a.hpp>\n'})

    def test_a_lower_module_may_not_see_a_higher_one(self):
        self.refuses({"src/base/a.cpp": '\n#include <hpcai/ops/a.hpp>\n'},
                     "src/base/a.cpp:2: base may not include ops")

    def test_a_library_stays_in_its_corner_and_out_of_public_headers(self):
        self.accepts({"src/comm/mpi/a.cpp": "#include <mpi.h>\n"})
        self.refuses({"src/ops/a.cpp": "#include <mpi.h>\n"}, "a.cpp:1: mpi.h belongs in comm")
        self.refuses({"include/hpcai/comm/a.hpp": "#include <mpi.h>\n"}, "mpi.h in a public header")

    def test_a_library_may_belong_to_a_single_file(self):
        self.accepts({"src/cli/command_line.cpp": "#include <CLI/App.hpp>\n"})
        self.refuses({"src/cli/run_command.cpp": "#include <CLI/App.hpp>\n"},
                     "CLI/App.hpp belongs in cli/command_line.cpp")

    def test_the_parts_of_cudnn_belong_in_its_folder(self):
        self.accepts({"docs/layers.txt": "device:\n", "src/device/cuda/a.cpp": "#include <cudnn_ops.h>\n"})
        self.refuses({"src/ops/a.cpp": "#include <cudnn_ops.h>\n"}, "cudnn_ops.h belongs in device/cuda")

    def test_the_folder_of_kernels_is_a_module(self):
        layers = {"docs/layers.txt": "ops:\nkernels: ops\ndevice: ops kernels\ncomm: ops device\n"}
        self.accepts({**layers, "kernels/a.cu": '#include "a.hpp"\n#include <hpcai/ops/a.hpp>\n', "kernels/a.hpp": "",
                      "src/device/a.cpp": '#include "kernels/a.hpp"\n'})
        for module in ("device", "comm"):
            self.refuses({**layers, "kernels/a.cu": f"\n#include <hpcai/{module}/a.hpp>\n"},
                         f"kernels/a.cu:2: kernels may not include {module}")
        self.refuses({**layers, "src/comm/a.cpp": '#include "kernels/a.hpp"\n'}, "comm may not include kernels")
        self.refuses({**layers, "kernels/a.hpp": '#include "b.cuh"\n', "kernels/b.cuh": '#include "a.hpp"\n'},
                     "these 2 include each other in a cycle: kernels/a kernels/b")

    def test_a_layer_may_not_name_one_above_it(self):
        self.refuses({"docs/layers.txt": "base: ops\nops:\n"}, "not listed above")

    def test_a_circle_of_includes_is_refused(self):
        ring = {f"src/ops/r{i}.hpp": f'#include "r{(i + 1) % 5}.hpp"\n' for i in range(5)}
        self.refuses(ring, "these 5 include each other in a cycle: ops/r0 ops/r1 ops/r2 ops/r3 ops/r4")
        public = {f"include/hpcai/ops/r{i}.hpp": f'#include <hpcai/ops/r{(i + 1) % 5}.hpp>\n' for i in range(5)}
        self.refuses(public, "these 5 include each other")
        self.accepts({**ring, "src/ops/r4.hpp": ""})
        self.accepts({"src/ops/a.hpp": "", "src/ops/a.cpp": '#include "a.hpp"\n'})
        self.refuses({"src/ops/a.hpp": "", "src/ops/a.cpp": '#include "b.hpp"\n', "src/ops/b.hpp": '#include "a.hpp"\n'},
                     "these 2 include each other in a cycle: ops/a ops/b")
        through_a_source = {**ring, "src/ops/r4.hpp": "", "src/ops/r4.cpp": "#include <hpcai/ops/r0.hpp>\n",
                            "include/hpcai/ops/r0.hpp": '', "src/ops/r0.hpp": '#include "r1.hpp"\n'}
        self.refuses(through_a_source, "these 5 include each other")

    def test_a_folder_that_is_no_module_is_refused(self):
        self.refuses({"src/misc/a.cpp": ""}, "not a module")


class Budget(unittest.TestCase):
    def accepts(self, text):
        self.assertEqual(run("check_budget.py", {"src/ops/a.cpp": text}), (0, ""))

    def refuses(self, text, message):
        code, output = run("check_budget.py", {"src/ops/a.cpp": text})
        self.assertEqual(code, 1, output)
        self.assertIn(message, output)

    def test_short_things_pass(self):
        self.accepts("namespace a {\nint f(int b) {\n    return b;\n}\n}  // namespace a\n")

    def test_a_long_file_is_refused(self):
        self.refuses("// a\n" * 401, "401 lines")

    def test_a_long_function_is_refused_wherever_it_stands(self):
        body = "    b();\n" * 79
        short = "int g() { return 0; }\n" * 20
        for text in ("void f() {\n%s}\n", "namespace a {\nvoid f() {\n%s}\n}\n",
                     "class A {\n    void f() const {\n%s}\n};\n",
                     "A::f(int b) : c_(b), d_{b} {\n%s}\n",
                     "template <typename T>\nT f(T b) {\n%s}\n"):
            self.refuses(short + text % body, "f has 8")

    def test_most_functions_must_be_short(self):
        self.refuses("void f() {\n%s}\n" % ("    b();\n" * 40), "nine of ten functions")

    def test_braces_in_strings_comments_and_initializers_are_no_functions(self):
        self.accepts('const char* a = "{(";\n// {(\nchar b = \'{\';\nA c{f(1)};\n'
                     "constexpr std::array d = {g(1), g(2)};\nint e(int x) { return x; }\n")

    def test_parameters_are_counted_as_a_reader_does(self):
        self.accepts("void f(std::map<int, int> a, int (*b)(int, int), int c, int d, int e) {}\n")
        self.accepts("A::A(int a, int b) : c_(1, 2, 3, 4, 5, 6, 7), d_{a} {}\n")
        self.refuses("void f(int a, int b, int c, int d, int e, int g) {}\n", "6 parameters")
        self.refuses("void A::operator()(int a, int b, int c, int d, int e, int g) {}\n",
                     "6 parameters")

    def test_python_has_budgets_of_its_own(self):
        def outcome(text):
            return run("check_budget.py", {"scripts/a.py": text})

        self.assertEqual(outcome("def f():\n" + "    b()\n" * 39), (0, ""))
        for text, message in (("b()\n" * 351, "a.py: 351 lines, at most 350"),
                              ("def f():\n" + "    b()\n" * 40, "a.py:1: f has 41 lines, at most 40"),
                              ("class A:\n    def f(self):\n" + "        b()\n" * 40, "a.py:2: f has 41")):
            code, output = outcome(text)
            self.assertEqual(code, 1, output)
            self.assertIn(message, output)

    def test_feature_ifs_are_rare(self):
        self.refuses("#if A\n#endif\n" + "// a\n" * 300, "#if in")


class Words(unittest.TestCase):
    def findings(self, name, text):
        """Returns the output for one file."""
        code, output = run("check_words.py", {name: text})
        self.assertEqual(code, 1 if output else 0)
        return output

    def test_words_of_the_list_are_found(self):
        for name, text in (("src/a.cpp", "// Sums the step behind it.\n"),
                           ("src/a.cpp", "/// The run goes\n/// on.\nint a;\n"),
                           ("src/a.cpp", 'auto a = "the group gives up";\n'),
                           ("scripts/a.py", '"""The program says its name."""\n'),
                           ("scripts/a.py", "a = 1  # behind the step\n"),
                           ("scripts/a.py", 'print("nobody answers")\n'),
                           ("scripts/a.sh", "# The run goes on.\n"),
                           ("scripts/a.sh", 'echo "nobody answers"\n'),
                           ("docs/a.md", "The program says so.\n")):
            self.assertIn("; plain: ", self.findings(name, text), (name, text))

    def test_comments_that_begin_as_a_fragment_are_found(self):
        for text in ("// Of all ranks.\n", "int a;  // Which is a lot.\n", "/// In which it waits.\nint a;\n"):
            self.assertIn("a comment begins with", self.findings("src/a.cpp", text), text)
        self.assertIn("a comment begins with", self.findings("scripts/a.py", '"""Whose bytes."""\n'))

    def test_plain_sentences_and_code_pass(self):
        for name, text in (("src/a.cpp", "// The sum of all ranks, which is exact.\nint behind = tell(beside);\n"),
                           ("src/a.cpp", 'auto key = "behind";  // a record key\n'),
                           ("src/a.cpp", "// It consists of vectors made up of words.\n"),
                           ("scripts/a.py", "behind = 'beside'  # a key\n"),
                           ("scripts/a.sh", "#!/bin/bash\n[[ $# -gt 0 ]] && behind=${1#of}\n"),
                           ("tests/a.cpp", 'EXPECT_EQ(out, "nobody answers");\n'),
                           ("docs/a.md", "Run `tell behind` or\n```\nit says so\n```\n")):
            self.assertEqual(self.findings(name, text), "", (name, text))


if __name__ == "__main__":
    unittest.main()
