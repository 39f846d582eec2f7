/**
 * WritingPrograms: programs that make, copy, move and remove files of the work tree. Left out: modes of mkdir, which may
 * open a folder to everybody.
 */
import { tableOf } from "./ProgramTable.ts"

export const WRITING = tableOf(`
# man 1 %, Debian 12
@gnu: -v --verbose --help --version
mkdir: write writes * = makes folders
  -p --parents @gnu
touch: write writes * = makes files, or changes their times
  -a -c --no-create -d:any --date:any -f -h -m -r:path --reference:path -t: --time: --help --version
rmdir: write writes * = removes empty folders
  --ignore-fail-on-non-empty -p --parents @gnu
cp: copy writes * = copies files
  -f --force -i --interactive -n --no-clobber -p --preserve? --parents -u --update -T --no-target-directory -t:out
  --target-directory:out -L --dereference -x --one-file-system @gnu
  trusted -r -R --recursive -a --archive -d -P --no-dereference -l --link -s --symbolic-link
mv: write writes * = moves files
  -i --interactive -n --no-clobber -t:out --target-directory:out -T --no-target-directory -u --update @gnu
  writes -f --force
tee: write writes * = writes files
  -a --append -i --ignore-interrupts -p --help --version
rm: write writes = removes files
  -f --force -i -I --interactive? --one-file-system -r -R --recursive -d --dir @gnu
ln: copy writes = makes a link, which may lead out of the work tree
  -f --force -i -n --no-dereference -r --relative -s --symbolic -T -t:out --target-directory:out @gnu
chmod: write writes = changes who may use files
  -c --changes -f --silent --quiet -R --recursive @gnu
chown|chgrp|setfacl|chattr: any open writes = changes who may use files
dd|install|truncate|split|csplit|shred|mkfifo|mknod|patch|ed|sponge: any open writes = writes the files that it is given
mktemp: any open writes = makes a file outside the work tree
tar|zip|unzip|gzip|gunzip|zcat|bzip2|bunzip2|xz|unxz|zstd|7z|cpio|ar: any open writes = packs or unpacks files
rsync: any open writes = copies, and may connect or run
`)
