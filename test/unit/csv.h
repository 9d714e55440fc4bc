/*
 * csv.h
 *	  Reading the tables of published values in test/vectors.
 *
 * Paths are relative to the top directory of the project, where the tests run.
 */
#ifndef SF_CSV_H
#define SF_CSV_H

#include "tap.h"

#define MAX_COLUMNS 12

/* Cuts a line at its commas and returns the number of columns. */
static inline int
split(char *line, char *columns[MAX_COLUMNS])
{
	int			count = 0;

	line[strcspn(line, "\r\n")] = '\0';
	while (count < MAX_COLUMNS)
	{
		columns[count++] = line;
		line = strchr(line, ',');
		if (line == NULL)
			break;
		*line++ = '\0';
	}
	return count;
}

/*
 * Calls check_row for each row after the header.  Each row must have count columns.
 * Returns the number of rows.
 */
static inline int
for_each_row(const char *path, int count, void (*check_row) (char *columns[MAX_COLUMNS]))
{
	FILE	   *file = fopen(path, "r");
	char		line[1024];
	char	   *columns[MAX_COLUMNS];
	int			rows = 0;

	ok(file != NULL, "%s opens", path);
	if (file == NULL)
		return 0;
	if (fgets(line, sizeof(line), file) == NULL)
		ok(false, "%s has a header", path);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		if (ok(split(line, columns) == count, "row %d of %s", ++rows, path))
			check_row(columns);
	}
	fclose(file);
	return rows;
}

#endif							/* SF_CSV_H */
