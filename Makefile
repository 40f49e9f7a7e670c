# Bezel. `make help` lists the targets.

CC      ?= cc
CFLAGS  ?= -O3 -g
PREFIX  ?= /usr/local
B       ?= build

STD      = -std=c11 -D_GNU_SOURCE -ffp-contract=off -fvisibility=hidden -fno-math-errno
WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion
ALL_CFLAGS = $(STD) $(WARNINGS) -Iinclude -Isrc -MMD -MP $(CFLAGS)
LIBS     = -lm -pthread

LIB_SRC  = $(sort $(wildcard src/*.c src/*/*.c))
CLI_SRC  = $(sort $(wildcard cli/*.c))
# Every tests/test_*.c is a program of its own; tests/support/*.c is shared by them.
TEST_SRC = $(sort $(wildcard tests/test_*.c))
TEST_LIB_SRC = $(sort $(wildcard tests/support/*.c))
FUZZ_SRC = $(sort $(wildcard tests/fuzz/fuzz_*.c))

LIB_OBJ  = $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ  = $(CLI_SRC:%.c=$(B)/%.o)
TEST_LIB_OBJ = $(TEST_LIB_SRC:%.c=$(B)/%.o)
TESTS    = $(TEST_SRC:tests/%.c=$(B)/tests/%)

.PHONY: all tests clean
all: $(B)/bezel

$(B)/libbezel.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/bezel: $(CLI_OBJ) $(B)/libbezel.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Kernels for one instruction set; the table is chosen at run time.
$(B)/src/cpu/kernels_avx2.o: CFLAGS += $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),-mavx2 -mfma -mf16c)

$(B)/tests/%: $(B)/tests/%.o $(TEST_LIB_OBJ) $(B)/libbezel.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

tests: $(TESTS)

clean:
	rm -rf build

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_LIB_OBJ:.o=.d) $(TEST_SRC:%.c=$(B)/%.d)
.SECONDARY:
