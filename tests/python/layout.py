"""The package's view of C, for a comparison with the compiler's: layout.py c|values|functions|arguments"""
import ctypes
import sys

from bezel import _library, _structs


def struct_lines():
    """C expressions with their values in the package"""
    for struct in _structs.STRUCTS:
        yield f"sizeof({struct.c_name})", ctypes.sizeof(struct)
        for field in struct._fields_:
            yield f"offsetof({struct.c_name}, {field[0]})", getattr(struct, field[0]).offset
            yield f"sizeof((({struct.c_name} *)0)->{field[0]})", getattr(struct, field[0]).size
    yield from _structs.CONSTANTS.items()


def main():
    what = sys.argv[1]
    if what == "c":
        print("#include <stddef.h>\n#include <stdio.h>")
        print("\n".join(f"#include <{h}>" for h in ("bezel.h", "bezel_batch.h", "bezel_debug.h", "bezel_embed.h", "bezel_media.h")))
        print("int main(void)\n{")
        for text, _ in struct_lines():
            print(f'    printf("%s %ld\\n", "{text}", (long)({text}));')
        print(f'    printf("BZ_VERSION %d.%d.%d\\n", BZ_VERSION_MAJOR, BZ_VERSION_MINOR, BZ_VERSION_PATCH);\n    return 0;\n}}')
    elif what == "values":
        for text, value in struct_lines():
            print(text, value)
        print("BZ_VERSION", _structs.VERSION)
    elif what == "functions":
        print("\n".join(_library.FUNCTIONS))
    else:
        for name, (_, *arguments) in _library.FUNCTIONS.items():
            print(name, len(arguments))


main()
