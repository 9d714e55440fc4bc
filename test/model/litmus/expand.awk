# Makes one litmus test for herd7 of one condition of a .test file: -v form=llsc or lse,
# -v number= of the condition, -v without= the name of a barrier that is left out, or nothing.
#
# PostgreSQL's primitives on AArch64: plain accesses are LDR and STR; pg_read_barrier is DMB ISHLD;
# pg_memory_barrier is DMB ISH; pg_write_barrier is DMB ISHST, the weakest that it may be (compilers
# emit DMB ISH); a compare-and-swap and an exchange are LDAXR and STLXR, or one
# instruction of LSE.  A swap that fails ends its process, and so does an exclusive store that
# fails: the loop that it is in begins again.  A process that runs to its end has done=1.
# begin_change and end_change are the functions of state/generator_state.c, each with a barrier
# of its name.  They write the generation, which only the holder of the lock does, without an addition.

function emit(text) { code[process, ++lines[process]] = text }

# The register of a name, a new one for a new name.
function register(name) {
	if (!((process, name) in registers)) {
		registers[process, name] = values[process]++
		index_of[names[process] "." name] = process ":X" registers[process, name]
	}
	return "W" registers[process, name]
}

function address(cell) { return "[X" (20 + cells[cell]) "]" }

# A register with a number, or the one of a name.
function operand(value) {
	if (value !~ /^[0-9]+$/)
		return register(value)
	emit("MOV " register("number" value) ",#" value)
	return register("number" value)
}

function exclusive(value, cell) {
	emit("STLXR " register("failed") "," value "," address(cell))
	emit("CBNZ " register("failed") ",END" process)
}

function swap(cell, expected, value,	e, v, found) {
	e = operand(expected)
	v = operand(value)
	found = register("found_in_" cell)
	if (form == "lse") {
		emit("MOV " found "," e)
		emit("CASAL " found "," v "," address(cell))
	} else
		emit("LDAXR " found "," address(cell))
	emit("CMP " found "," e)
	emit("B.NE END" process)
	if (form != "lse")
		exclusive(v, cell)
}

function exchange(cell, found, value,	v) {
	v = operand(value)
	if (form == "lse") {
		emit("SWPAL " v "," register(found) "," address(cell))
		return
	}
	emit("LDAXR " register(found) "," address(cell))
	exclusive(v, cell)
}

function barrier(name, option) {
	if (name != without)
		emit("DMB " option)
}

function begin(name) {
	process = processes++
	names[process] = name
	values[process] = lines[process] = 0
}

function end() {
	emit("MOV " register("done") ",#1")
	emit("END" process ":")
	process = ""
}

function include(file, taken,	line, words) {
	while ((getline line < (directory "/" file)) > 0) {
		sub(/TAKEN/, taken, line)
		if (split(line, words) > 0)
			step(words[1], words[2], words[3], words[4])
	}
	close(directory "/" file)
	end()
}

function step(word, first, second, third) {
	if (word ~ /^#/)
		return
	else if (word == "process")
		begin(first)
	else if (word == "read")
		emit("LDR " register(first) "," address(second))
	else if (word == "write")
		emit("STR " operand(second) "," address(first))
	else if (word == "swap")
		swap(first, second, third)
	else if (word == "exchange")
		exchange(first, second, third)
	else if (word == "read_barrier")
		barrier(first, "ISHLD")
	else if (word == "write_barrier")
		barrier(first, "ISHST")
	else if (word == "full_barrier")
		barrier(first, "ISH")
	else if (word == "begin_change") {
		step("write", "generation", first)
		barrier("begin_change", "ISH")
	} else if (word == "end_change") {
		barrier("end_change", "ISHST")
		step("write", "generation", first)
	} else {
		print FILENAME ": what is " word "?" > "/dev/stderr"
		exit 1
	}
}

function condition(	i, text) {
	text = ""
	for (i = 0; i < processes; i++)
		text = text " /\\ " index_of[names[i] ".done"] "=1"
	for (i = 2; i <= NF; i++) {
		if ($i == "KEPT")
			text = text " /\\ (" kept("session") ")"
		else if ($i == "UNCHANGED")
			text = text " /\\ (" kept("reader") ")"
		else
			text = text " /\\ " term($i)
	}
	return substr(text, 5)
}

# Whether a process has read the same even generation twice.
function kept(name,	i, text) {
	text = ""
	for (i = 2; i <= 6; i += 2)
		text = text " \\/ " term(name ".generation_seen=" i) " /\\ " term(name ".generation_again=" i)
	return substr(text, 5)
}

function term(text,	sides) {
	split(text, sides, "=")
	if (sides[1] in index_of)
		return index_of[sides[1]] "=" sides[2]
	if (!(sides[1] in cells)) {
		print FILENAME ": what is " sides[1] "?" > "/dev/stderr"
		exit 1
	}
	return "[" sides[1] "]=" sides[2]
}

function print_test(name,	i, j, cell, most, row) {
	print "AArch64 " name
	print "{"
	for (cell in cells) {
		print cell "=" initial[cell] ";"
		for (i = 0; i < processes; i++)
			print i ":X" (20 + cells[cell]) "=" cell ";"
	}
	print "}"
	for (i = 0; i < processes; i++)
		most = lines[i] > most ? lines[i] : most
	for (j = 0; j <= most; j++) {
		row = ""
		for (i = 0; i < processes; i++)
			row = row " | " (j == 0 ? "P" i : code[i, j])
		print substr(row, 4) " ;"
	}
	print "exists (" condition() ")"
}

BEGIN { processes = conditions = 0; process = "" }

$1 == "cells" {
	for (i = 2; i <= NF; i++) {
		split($i, sides, "=")
		cells[sides[1]] = i - 2
		initial[sides[1]] = sides[2]
	}
	next
}

NF == 0 && process != "" { end() }
NF == 0 { next }
$1 == "include" { include($2, $3); next }

$1 == "never" || $1 == "sometimes" {
	if (++conditions == number)
		print_test("test")
	next
}

{ step($1, $2, $3, $4) }
